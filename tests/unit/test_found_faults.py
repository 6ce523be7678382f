"""Faults that were found in the harness, each as a test for its kind."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from harness.deterministic_asyncio import Scheduler
from harness.explore.scenario_files import load
from harness.images.digest import image_digest
from harness.model.errors import UsageError
from harness.model.image import Image
from harness.model.result import ExperimentResult, Fired, IncarnationTrace, Verdict
from harness.model.schedule import CONTROL, Moment, parse
from harness.model.trace import Hit
from harness.model.workload import Command, Workload
from harness.moments.catalogue import scan
from harness.oracles.processes import NoSurvivors
from harness.record import write_run as record
from harness.record.outcome import ScenarioOutcome
from harness.replay.reproduce import read_failure
from harness.scenario import Scenario

SCENARIO = (
    "from harness.oracles.processes import NoSurvivors\n"
    "from harness.scenario import Scenario\n"
    "from harness.model.workload import Command, Workload\n"
    "ONE = Scenario('{}', lambda s: None, lambda n: Workload((), Command('f')), (NoSurvivors(),))\n"
)


def test_control_leg_has_an_id_of_its_own() -> None:
    """The id of the control leg says so: a schedule without strikes is still a true value."""
    result = ExperimentResult("s", CONTROL, 0, Verdict.HELD)
    assert result.experiment_id == "s[control]"


@pytest.mark.parametrize("name", ["orders-journal", "orders-wal", "orders-shm"])
def test_file_named_like_a_part_of_a_database_counts(tmp_path: Path, name: str) -> None:
    """Equal durable state means all of it: a file is a part of a database only beside one."""
    digests = []
    for content in ("1", "2"):
        image = _image(tmp_path / content)
        (image.worker_dir / name).write_text(content, encoding="utf-8")
        digests.append(image_digest(image))
    assert digests[0] != digests[1]


def test_empty_directory_counts(tmp_path: Path) -> None:
    """A directory is durable, too."""
    bare, made = _image(tmp_path / "bare"), _image(tmp_path / "made")
    (made.worker_dir / "claimed").mkdir()
    assert image_digest(bare) != image_digest(made)


def test_file_name_that_is_no_text_has_a_digest(tmp_path: Path) -> None:
    """A name may be any bytes."""
    image = _image(tmp_path / "image")
    Path(str(image.worker_dir), "caf\udce9").write_text("x", encoding="utf-8")
    assert len(image_digest(image)) == 64


def test_two_files_that_share_a_module_name_are_refused(tmp_path: Path) -> None:
    """A scenario is never lost in silence."""
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "share_a_name.py"
        path.write_text(SCENARIO.format(folder), encoding="utf-8")
    with pytest.raises(UsageError, match="would be imported as 'share_a_name'"):
        load(tmp_path)


def test_file_that_leaves_python_is_a_usage_error(tmp_path: Path) -> None:
    """Bad input never ends the command by itself."""
    (tmp_path / "leaves_python.py").write_text("raise SystemExit(5)\n", encoding="utf-8")
    with pytest.raises(UsageError, match="SystemExit: 5"):
        load(tmp_path)


def test_moment_is_reached_by_its_own_hit_and_struck_once_an_experiment() -> None:
    """The tally of a moment: another hit of its label is not it, two lives are one experiment."""
    hit = Hit("a.b.before", {}, {"": 1}, stop=True)
    incarnations = (IncarnationTrace(1, (hit,), "", ""), IncarnationTrace(2, (hit,), "", ""))
    twice = parse("a.b.before=kill / a.b.before=kill")
    fired = tuple(Fired(Moment("a.b.before"), number) for number in (1, 2))
    results = (
        ExperimentResult("s", CONTROL, 0, Verdict.HELD, incarnations=incarnations[:1]),
        ExperimentResult(
            "s", parse("a.b.before#7=kill"), 0, Verdict.NOT_FIRED, incarnations=incarnations[:1]
        ),
        ExperimentResult("s", twice, 0, Verdict.HELD, fired=fired, incarnations=incarnations),
    )
    scenario = Scenario("s", lambda _: None, lambda _: Workload((), Command("f")), (NoSurvivors(),))
    seventh, first = ScenarioOutcome(scenario, scan(()), results, whole=True).moments
    assert (seventh.moment.ordinal, seventh.reached, seventh.struck) == (7, False, 0)
    assert (first.reached, first.struck, first.struck_in_recovery) == (True, 1, 1)


def test_virtual_sleep_inside_a_turn_is_refused() -> None:
    """Sleeping inside a turn is an error and never a hang."""
    scheduler = Scheduler("seed")

    async def main() -> None:
        await scheduler.turn(lambda: scheduler.sleep(1))

    with pytest.raises(RuntimeError, match="does not pass inside a turn"):
        scheduler.run(main)


def test_task_that_outlives_its_turn_takes_turns_of_its_own() -> None:
    """One operation at a time: what an operation has started is on its own when it is over."""
    scheduler = Scheduler("seed")
    order: list[str] = []

    async def operation(name: str) -> None:
        order.append(f"{name} in")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        order.append(f"{name} out")

    async def main() -> None:
        begun: list[asyncio.Task[None]] = []
        go = asyncio.Event()

        async def later() -> None:
            await go.wait()
            await scheduler.turn(lambda: operation("inner"))

        async def start() -> None:
            begun.append(asyncio.create_task(later()))

        await scheduler.turn(start)
        go.set()
        await asyncio.gather(*begun, scheduler.turn(lambda: operation("outer")))

    scheduler.run(main)
    assert order in (
        ["inner in", "inner out", "outer in", "outer out"],
        ["outer in", "outer out", "inner in", "inner out"],
    )


@pytest.mark.parametrize("name", ["sys", "os.nowhere", "math", "harness.nowhere"])
def test_name_without_a_source_is_a_usage_error(name: str) -> None:
    """What cannot be read is said, not raised as something else."""
    with pytest.raises(UsageError, match="no package or module"):
        scan((name,))


def test_catalogue_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Points are listed without running anything, packages above them included."""
    package = tmp_path / "cannot_run"
    package.mkdir()
    (package / "__init__.py").write_text("1 / 0\n", encoding="utf-8")
    (package / "part.py").write_text("crash_point('a.b.before')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert scan(("cannot_run.part",)).labels == ("a.b.before",)
    assert [point.source for point in scan(("cannot_run",))] == ["cannot_run/part.py:1"]


def test_source_in_another_encoding_is_read_as_python_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A declared encoding and a byte order mark are Python, and other bytes are an error."""
    monkeypatch.syspath_prepend(tmp_path)
    text = "# -*- coding: latin-1 -*-\nx = 'é'\ncrash_point('a.b.before')\n"
    (tmp_path / "in_latin.py").write_bytes(text.encode("latin-1"))
    (tmp_path / "with_mark.py").write_bytes(b"\xef\xbb\xbfcrash_point('a.b.after')\n")
    (tmp_path / "in_nothing.py").write_bytes(b"x = '\xff'\ncrash_point('a.b.mid')\n")
    assert scan(("in_latin", "with_mark")).labels == ("a.b.after", "a.b.before")
    with pytest.raises(UsageError, match="not Python"):
        scan(("in_nothing",))


def test_label_twice_on_one_line_is_a_duplicate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A label names one place."""
    line = "crash_point('a.b.before'); crash_point('a.b.before')\n"
    (tmp_path / "twice_a_line.py").write_text(line, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match="declared twice"):
        scan(("twice_a_line",))


def test_left_over_link_of_a_killed_run_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was killed while it pointed `latest` at itself stops nobody."""
    monkeypatch.setattr(record, "as_json", lambda *_: {})
    (tmp_path / f".latest.{os.getpid()}").symlink_to("gone")
    directory = tmp_path / "run"
    directory.mkdir()
    record.write_record(directory, (), cast("record.RunMetadata", SimpleNamespace()))
    assert (tmp_path / "latest").resolve() == directory


@pytest.mark.parametrize("text", ["[" * 100_000, '{"schema": "crash-harness/failure/1"}'])
def test_failure_that_cannot_be_read_is_a_usage_error(tmp_path: Path, text: str) -> None:
    """What comes from a file is data, and bad data is a message."""
    file = tmp_path / "failure.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError):
        read_failure(file)


def _image(path: Path) -> Image:
    image = Image(path)
    image.worker_dir.mkdir(parents=True)
    image.world_dir.mkdir()
    return image
