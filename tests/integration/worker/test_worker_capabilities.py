"""The capabilities on real files."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

import pytest

import harness.points
from worker_under_test.adapters.local_file_space import LocalFileSpace
from worker_under_test.adapters.system_clock import SystemClock
from worker_under_test.capabilities.compute import Compute
from worker_under_test.capabilities.export import Export
from worker_under_test.capabilities.registry import CapabilityRegistry
from worker_under_test.domain.artifact import ArtifactSet
from worker_under_test.domain.command import Command
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.event import AttemptEvent, EventKind
from worker_under_test.domain.recovery import RecoveryPolicy

if TYPE_CHECKING:
    from pathlib import Path

    from worker_under_test.domain.json_value import JsonObject, JsonValue
    from worker_under_test.domain.progress import Checkpoint, Progress
    from worker_under_test.ports.remote import Reply

PARTS = {"a.txt": "alpha " * 100, "b.txt": "", "c.txt": "über"}


class Reports:
    """A `ProgressReporter` that remembers."""

    attempt_id = "attempt-1"
    cancelled = False
    checkpoint: Checkpoint | None = None

    def __init__(self) -> None:
        self.made: list[tuple[Progress, JsonObject | None]] = []

    async def __call__(self, progress: Progress, evidence: JsonObject | None = None) -> None:
        """Remember a report."""
        self.made.append((progress, evidence))


class NoRemote:
    """A `Remote` that nothing may use."""

    async def request(self, method: str, path: str, **given: object) -> Reply:
        """Refuse to be used."""
        raise AssertionError(path)


class CrashError(BaseException):
    """Stands for a crash: no handler of the code under test takes it."""


def export_command(parts: dict[str, str] | None = None, command_id: str = "c1") -> Command:
    """Return a command that exports."""
    listed: list[JsonValue] = [
        {"name": name, "text": text} for name, text in (parts or PARTS).items()
    ]
    return Command(command_id, "export", 1, {"name": "report", "parts": listed})


async def export(root: Path, command: Command | None = None) -> AttemptEvent:
    """Run an export."""
    event = await Export(LocalFileSpace(root)).execute(command or export_command(), Reports())
    assert event is not None
    return event


def on_disk(root: Path) -> dict[str, str]:
    """Read the set."""
    directory = root / "artifacts" / "c1"
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(directory.iterdir())}


@pytest.mark.requirement("REC-03")
def test_compute_gives_one_output_for_one_input() -> None:
    """The output is what it is by hand, and the same the second time."""

    async def run() -> None:
        command = Command("c1", "compute", 1, {"seed": "s", "rounds": 3})
        reports = Reports()
        event = await Compute(NoRemote(), SystemClock()).execute(command, reports)
        assert event == await Compute(NoRemote(), SystemClock()).execute(command, Reports())
        value = b"s"
        for _ in range(3):
            value = hashlib.sha256(value).digest()
        expected = {"input": command.digest, "output": value.hex()}
        assert event == AttemptEvent(EventKind.SUCCEEDED, expected)
        assert len(reports.made) == 1

    asyncio.run(run())


@pytest.mark.requirement("ATT-08")
@pytest.mark.parametrize(
    "payload",
    [{}, {"seed": 1, "rounds": 1}, {"seed": "s", "rounds": 0}, {"seed": "s", "rounds": True}],
)
def test_compute_refuses_what_it_cannot_read(payload: dict[str, JsonValue]) -> None:
    """What it cannot read is refused as invalid."""
    with pytest.raises(DomainError) as refusal:
        asyncio.run(
            Compute(NoRemote(), SystemClock()).execute(
                Command("c1", "compute", 1, payload), Reports()
            )
        )
    assert refusal.value.kind is Kind.INVALID


@pytest.mark.requirement("CAP-02", "REC-02", "REC-15")
def test_the_registry_dispatches_by_name_and_version(tmp_path: Path) -> None:
    """An unknown name and a wrong version are not executed."""
    registry = CapabilityRegistry(
        Compute(NoRemote(), SystemClock()), Export(LocalFileSpace(tmp_path))
    )
    assert registry.policy_of(Command("c", "compute", 1, {})) is RecoveryPolicy.RECOMPUTE
    assert registry.policy_of(export_command()) is RecoveryPolicy.RESUME
    for command in (Command("c", "compute", 2, {}), Command("c", "other", 1, {})):
        assert registry.policy_of(command) is None
        with pytest.raises(DomainError) as refusal:
            asyncio.run(registry.execute(command, Reports()))
        assert refusal.value.kind is Kind.NOT_FOUND


@pytest.mark.requirement("FIL-03", "FIL-08")
def test_export_publishes_the_set_and_names_it(tmp_path: Path) -> None:
    """The files are there with their checksums, a report per part, and nothing temporary."""

    async def run() -> None:
        reports = Reports()
        event = await Export(LocalFileSpace(tmp_path)).execute(export_command(), reports)
        assert event is not None
        assert on_disk(tmp_path) == PARTS
        for artifact in event.artifacts:
            data = (tmp_path / artifact.path).read_bytes()
            assert (artifact.size, artifact.sha256) == (
                len(data),
                hashlib.sha256(data).hexdigest(),
            )
        assert len(reports.made) == len(PARTS)

    asyncio.run(run())


PLACES = [
    *(
        (f"artifact.{step}", part)
        for step in ("write.before", "write.mid", "write.after", "sync.after")
        for part in PARTS
    ),
    ("artifact.rename.before", None),
    ("artifact.rename.mid", "b.txt"),
    ("artifact.rename.mid", "c.txt"),
    ("artifact.rename.after", None),
    ("directory.sync.after", None),
]


@pytest.mark.requirement("REC-04..REC-06", "INV-11", "CP-G1..CP-G6", "FIL-01..FIL-04")
@pytest.mark.parametrize(("label", "part"), PLACES)
def test_export_is_finished_after_a_crash_at_each_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, label: str, part: str | None
) -> None:
    """After a crash only whole files stand there, and in the end all of them."""

    def hook(hit: str, context: dict[str, object]) -> None:
        if hit == label and context.get("part") == part:
            raise CrashError

    monkeypatch.setattr(harness.points, "_hook", hook)
    with pytest.raises(CrashError):
        asyncio.run(export(tmp_path))
    for name, text in on_disk(tmp_path).items() if (tmp_path / "artifacts" / "c1").exists() else ():
        assert name.endswith(".tmp") or text == PARTS[name]
    monkeypatch.undo()
    asyncio.run(export(tmp_path))
    assert on_disk(tmp_path) == PARTS


@pytest.mark.requirement("REC-05", "REC-07", "REC-13", "FIL-02", "FIL-05")
def test_what_is_right_is_kept_and_what_is_wrong_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checksum tells right from wrong, at the temporary and at the final path."""
    directory = tmp_path / "artifacts" / "c1"
    directory.mkdir(parents=True)
    (directory / "a.txt").write_text(PARTS["a.txt"], encoding="utf-8")
    (directory / "b.txt.attempt-1.tmp").write_text("torn", encoding="utf-8")
    (directory / "c.txt").write_text("flipped", encoding="utf-8")
    (directory / "gone.txt.attempt-1.tmp").write_text("of no use", encoding="utf-8")
    written: list[object] = []

    def hook(hit: str, context: dict[str, object]) -> None:
        if hit == "artifact.write.before":
            written.append(context["part"])

    monkeypatch.setattr(harness.points, "_hook", hook)
    asyncio.run(export(tmp_path))
    assert written == ["b.txt", "c.txt"]
    assert on_disk(tmp_path) == PARTS


@pytest.mark.requirement("FIL-02", "FIL-06")
def test_a_whole_temporary_file_is_adopted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole temporary file is published and not written again."""
    files = ArtifactSet("c1", "attempt-1")
    directory = tmp_path / files.directory
    directory.mkdir(parents=True)
    for name, text in PARTS.items():
        (directory / files.temporary_name(name)).write_text(text, encoding="utf-8")

    def hook(hit: str, context: dict[str, object]) -> None:
        assert hit != "artifact.write.before"

    monkeypatch.setattr(harness.points, "_hook", hook)
    asyncio.run(export(tmp_path))
    assert on_disk(tmp_path) == PARTS


@pytest.mark.requirement("FIL-09")
def test_a_disk_that_is_full_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failure is raised, and nothing half done is left."""

    def hook(hit: str, context: dict[str, object]) -> None:
        if hit == "artifact.write.mid" and context["part"] == "b.txt":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(harness.points, "_hook", hook)
    with pytest.raises(OSError, match="No space"):
        asyncio.run(export(tmp_path))
    assert list((tmp_path / "artifacts").iterdir()) == []


@pytest.mark.requirement("INV-12", "ATT-08", "FIL-07")
@pytest.mark.parametrize(
    "command",
    [
        Command("c1", "export", 1, {}),
        Command("c1", "export", 1, {"name": "r", "parts": []}),
        Command("c1", "export", 1, {"name": "r", "parts": ["a"]}),
        Command("c1", "export", 1, {"name": "r", "parts": [{"name": "a"}]}),
        export_command({"../a": "x"}),
        export_command({"": "x"}),
        export_command(command_id="../c1"),
        Command("c1", "export", 1, {"name": "r", "parts": [{"name": "a", "text": "x"}] * 2}),
    ],
)
def test_export_refuses_what_it_cannot_make(tmp_path: Path, command: Command) -> None:
    """Traversal, separators, empty and doubled names are refused, and nothing is written."""
    with pytest.raises(DomainError) as refusal:
        asyncio.run(export(tmp_path, command))
    assert refusal.value.kind is Kind.INVALID
    assert list(tmp_path.iterdir()) == []
