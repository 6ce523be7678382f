"""Children on a real machine: found again, known for sure, never started twice."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from worker_under_test.adapters import local_processes
from worker_under_test.adapters.local_processes import (
    TOKEN_VARIABLE,
    LocalProcesses,
    boot_id,
    carriers,
    is_alive,
)
from worker_under_test.capabilities.command import RunCommand
from worker_under_test.domain.command import Command
from worker_under_test.domain.event import EventKind
from worker_under_test.domain.progress import Checkpoint
from worker_under_test.domain.recovery import Decision
from worker_under_test.ports.processes import ProcessIdentity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker_under_test.domain.event import AttemptEvent
    from worker_under_test.domain.json_value import JsonObject
    from worker_under_test.domain.progress import Progress

WAITING = ["/bin/sh", "-c", "echo >begun; read _ <../go; echo >>ran; exit 7"]
"""Waits at a pipe with a name, which `let_go` writes to."""
ATTEMPT = f"attempt-{uuid.uuid4().hex}"
TOKEN = f"command-{ATTEMPT}"
"""Its own in every test process: children are looked for on the whole machine."""
DEADLINE_S = 30.0


class Lines:
    """A `ProgressReporter` that keeps the last checkpoint."""

    attempt_id = ATTEMPT
    cancelled = False

    def __init__(self, evidence: JsonObject | None = None) -> None:
        self.checkpoint = None if evidence is None else Checkpoint(1, {}, evidence)
        self.identified = asyncio.Event()
        if evidence and "pid" in evidence:
            self.identified.set()

    async def __call__(self, progress: Progress, evidence: JsonObject | None = None) -> None:
        """Keep a report."""
        self.checkpoint = Checkpoint(2, progress.to_json(), evidence or {})
        if "pid" in self.checkpoint.evidence:
            self.identified.set()

    async def has_identity(self) -> None:
        """Wait until the child's identity is saved."""
        async with asyncio.timeout(DEADLINE_S):
            await self.identified.wait()


class Watched(LocalProcesses):
    """Processes that say when somebody waits for a child."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.waiting = asyncio.Event()

    async def wait(self, identity: ProcessIdentity) -> None:
        """Say so, and wait."""
        self.waiting.set()
        await super().wait(identity)


LIVES: list[Watched] = []
GATES: list[int] = []


@pytest.fixture(autouse=True)
def _reap() -> Iterator[None]:
    """Kill and reap what the lives of a test started: here they are all children of one process."""
    yield
    for life in LIVES:
        for child in life._children.values():
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    LIVES.clear()
    for gate in GATES:
        os.close(gate)
    GATES.clear()


def life(root: Path) -> Watched:
    """Return the processes of another life of the worker."""
    with suppress(FileExistsError):
        os.mkfifo(root / "go")
    LIVES.append(Watched(root))
    return LIVES[-1]


async def execute(root: Path, lines: Lines) -> AttemptEvent | None:
    """Execute the waiting child's command, with what an earlier life saved."""
    return await execute_in(life(root), lines)


async def execute_in(processes: Watched, lines: Lines) -> AttemptEvent | None:
    """Execute the waiting child's command in this life."""
    payload: JsonObject = {"argv": list(WAITING)}
    return await RunCommand(processes).execute(Command("p1", "command", 1, payload), lines)


async def started(root: Path, argv: list[str] = WAITING) -> ProcessIdentity:
    """Start a child as an earlier life would have."""
    earlier = life(root)
    await earlier.prepare(TOKEN)
    return await earlier.spawn(TOKEN, argv)


def let_go(root: Path) -> None:
    """Let the waiting child end, and any other that should not be there."""
    # Kept open, for what is written waits only as long as somebody has the pipe open.
    GATES.append(os.open(root / "go", os.O_RDWR))
    os.write(GATES[-1], b"\n" * 9)


@pytest.mark.parametrize("saved", [True, False])
def test_a_child_that_outlived_the_worker_is_waited_for(tmp_path: Path, *, saved: bool) -> None:
    """PRC-01, PRC-02, PRC-04, CP-H1..CP-H3: by its token, whether or not its pid was saved."""

    async def run() -> None:
        child = await started(tmp_path)
        evidence: dict[str, str | int] = {"token": TOKEN}
        if saved:
            evidence |= {"pid": child.pid, "start_time": child.start_time, "boot_id": child.boot_id}
        lines = Lines(dict(evidence))
        going = asyncio.create_task(execute(tmp_path, lines))
        await lines.has_identity()
        let_go(tmp_path)
        event = await going
        assert event is not None
        assert (event.kind, event.body["exit_code"]) == (EventKind.FAILED, 7)
        assert (tmp_path / TOKEN / "ran").read_text(encoding="utf-8") == "\n"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("argv", "kind"),
    [
        (["true"], EventKind.SUCCEEDED),
        (["false"], EventKind.FAILED),
        (["/bin/sh", "-c", "kill -9 $PPID"], EventKind.UNKNOWN),
    ],
)
def test_a_child_that_ended_meanwhile_is_known_by_what_it_left(
    tmp_path: Path, argv: list[str], kind: EventKind
) -> None:
    """PRC-05, CP-H4: its exit code, or unknown; it is not started again."""

    async def run() -> None:
        earlier = life(tmp_path)
        await earlier.prepare(TOKEN)
        await earlier.wait(await earlier.spawn(TOKEN, argv))
        event = await execute(tmp_path, Lines({"token": TOKEN}))
        assert event is not None
        assert event.kind is kind
        assert not (tmp_path / TOKEN / "begun").exists()

    asyncio.run(run())


def test_a_child_that_was_never_started_is_started(tmp_path: Path) -> None:
    """PRC-04, CP-B2: its directory is made before it, so without one there was none."""

    async def run() -> None:
        lines = Lines({"token": TOKEN})
        going = asyncio.create_task(execute(tmp_path, lines))
        await lines.has_identity()
        let_go(tmp_path)
        event = await going
        assert event is not None
        assert event.body["exit_code"] == 7
        assert (tmp_path / TOKEN / "begun").exists()

    asyncio.run(run())


def test_a_child_that_may_have_been_started_is_not_started(tmp_path: Path) -> None:
    """PRC-02, PRC-05, REC-16: its directory is there and nothing else: unknown."""

    async def run() -> None:
        await LocalProcesses(tmp_path).prepare(TOKEN)
        event = await execute(tmp_path, Lines({"token": TOKEN}))
        assert event is not None
        assert event.kind is EventKind.UNKNOWN
        assert not (tmp_path / TOKEN / "begun").exists()

    asyncio.run(run())


@pytest.mark.parametrize(
    "other",
    [{"start_time": 1}, {"boot_id": "another"}, {"pid": 1}],
)
def test_another_process_under_the_pid_is_neither_waited_for_nor_ended(
    tmp_path: Path, other: dict[str, object]
) -> None:
    """PRC-03, PRC-06, PRC-07, CP-H4: a pid alone means nothing, nor does one of another boot."""

    async def run() -> None:
        child = await started(tmp_path)
        processes = life(tmp_path)
        wrong = replace(child, **other)  # type: ignore[arg-type]
        assert not is_alive(wrong)
        async with asyncio.timeout(DEADLINE_S):
            await processes.wait(wrong)
        assert not await processes.end(wrong, TOKEN)
        assert is_alive(child)
        assert await processes.end(child, TOKEN)
        await processes.wait(child)
        assert not is_alive(child)

    asyncio.run(run())


def test_a_foreign_process_with_the_same_command_line_is_not_ours(tmp_path: Path) -> None:
    """PRC-07: without the token it is not found, and not ended though it is named."""
    environment = {k: v for k, v in os.environ.items() if k != TOKEN_VARIABLE}
    # `cat` ends with the pipe to it, and so with this test, whatever becomes of the test.
    with subprocess.Popen(["cat"], env=environment, stdin=subprocess.PIPE) as foreign:
        stat = Path(f"/proc/{foreign.pid}/stat").read_text(encoding="ascii")
        start_time = int(stat.rpartition(")")[2].split()[19])
        identity = ProcessIdentity(foreign.pid, start_time, boot_id())

        async def run() -> None:
            processes = life(tmp_path)
            assert await processes.find(TOKEN) is None
            assert is_alive(identity)
            assert not await processes.end(identity, TOKEN)
            assert is_alive(identity)

        try:
            asyncio.run(run())
        finally:
            foreign.kill()


def test_a_worker_that_ends_leaves_its_child_and_a_cancel_ends_it(tmp_path: Path) -> None:
    """PRC-02, CAP-10, ADM-06: and neither waits for the child."""

    async def run() -> None:
        for cancelled in (False, True):
            lines = Lines({"token": TOKEN} if cancelled else None)
            lines.cancelled = cancelled
            processes = life(tmp_path)
            going = asyncio.create_task(execute_in(processes, lines))
            async with asyncio.timeout(DEADLINE_S):
                await processes.waiting.wait()
            going.cancel()
            async with asyncio.timeout(DEADLINE_S):
                with suppress(asyncio.CancelledError):
                    await going
            found = await life(tmp_path).find(TOKEN)
            assert (found is None) == cancelled

    asyncio.run(run())


def test_what_a_child_starts_while_it_is_ended_ends_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ADM-06, PRC-07: after a look that missed it there is another one, until nobody is left."""
    forks = "echo >../told; read _ <../go; cat <../held & echo >../told; wait"
    looks = 0

    def tells() -> None:
        assert select.select([told], [], [], DEADLINE_S)[0], "the child says nothing"
        os.read(told, 1)

    def look(token: str) -> Iterator[ProcessIdentity]:
        nonlocal looks
        found = list(carriers(token))
        looks += 1
        if looks == 2:
            let_go(tmp_path)
            tells()
        yield from found

    async def run() -> None:
        processes = life(tmp_path)
        await processes.prepare(TOKEN)
        child = await processes.spawn(TOKEN, ["/bin/sh", "-c", forks])
        tells()
        monkeypatch.setattr(local_processes, "carriers", look)
        assert await processes.end(child, TOKEN)

    for name in ("told", "held"):
        os.mkfifo(tmp_path / name)
    told = os.open(tmp_path / "told", os.O_RDWR)
    GATES.append(told)
    asyncio.run(run())
    assert looks >= 2
    assert list(carriers(TOKEN)) == []


@pytest.mark.parametrize(
    ("evidence", "decision"),
    [
        (None, Decision.START),
        ({"token": TOKEN}, Decision.FIND_PROCESS),
        ({"token": ""}, Decision.UNKNOWN),
        ({}, Decision.UNKNOWN),
    ],
)
def test_the_evidence_decides(evidence: JsonObject | None, decision: Decision) -> None:
    """REC-02, REC-13, REC-16, PRC-04: from what was saved before the child."""
    checkpoint = None if evidence is None else Checkpoint(1, {}, evidence)
    proposal = RunCommand(life(Path())).recover(Command("p1", "command", 1, {}), checkpoint)
    assert proposal.decision is decision
    assert proposal.reason
