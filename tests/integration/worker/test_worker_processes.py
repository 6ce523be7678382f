"""Children on a real machine: found again, known for sure, never started twice."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from worker_under_test.adapters.local_processes import (
    TOKEN_VARIABLE,
    LocalProcesses,
    boot_id,
    is_alive,
    process_under,
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
    from worker_under_test.domain.json_value import JsonObject, JsonValue
    from worker_under_test.domain.progress import Progress

WAITING = ["/bin/sh", "-c", "echo >begun; until [ -e go ]; do sleep 0.01; done; echo >>ran; exit 7"]
TOKEN = "command-attempt-1"


class Lines:
    """A `ProgressReporter` that keeps the last checkpoint."""

    attempt_id = "attempt-1"
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


LIVES: list[LocalProcesses] = []


@pytest.fixture(autouse=True)
def _reap() -> Iterator[None]:
    """Kill and reap what the lives of a test started: here they are all children of one process."""
    yield
    for life in LIVES:
        for child in life._children.values():
            child.kill()
            child.wait()
    LIVES.clear()


def life(root: Path) -> LocalProcesses:
    """Return the processes of another life of the worker."""
    LIVES.append(LocalProcesses(root))
    return LIVES[-1]


async def execute(root: Path, lines: Lines) -> AttemptEvent | None:
    """Execute the waiting child's command, with what an earlier life saved."""
    payload: JsonObject = {"argv": list(WAITING)}
    return await RunCommand(life(root)).execute(Command("p1", "command", 1, payload), lines)


async def appears(path: Path) -> None:
    """Wait until another process has made a file."""
    while not path.exists():  # noqa: ASYNC110, ASYNC240 - another process makes it
        await asyncio.sleep(0.01)


async def started(root: Path, argv: list[str] = WAITING) -> ProcessIdentity:
    """Start a child as an earlier life would have."""
    earlier = life(root)
    await earlier.prepare(TOKEN)
    return await earlier.spawn(TOKEN, argv)


def let_go(root: Path) -> None:
    """Let the waiting child end."""
    (root / TOKEN / "go").touch()


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
        await lines.identified.wait()
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
        going = asyncio.create_task(execute(tmp_path, Lines({"token": TOKEN})))
        await appears(tmp_path / TOKEN / "begun")
        let_go(tmp_path)
        event = await going
        assert event is not None
        assert event.body["exit_code"] == 7

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
        async with asyncio.timeout(5):
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
    with subprocess.Popen(["sleep", "60"], env=environment) as foreign:
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


def test_two_workers_with_one_token_have_each_its_own_child(tmp_path: Path) -> None:
    """PRC-04, PRC-07: attempt ids are unique in one worker; the other's child is not ours.

    Two workers that are tried at once with one seed name their attempts alike.
    """

    async def run() -> None:
        ours, theirs = tmp_path / "ours", tmp_path / "theirs"
        child = await started(theirs)
        processes = life(ours)
        await processes.prepare(TOKEN)
        assert await processes.find(TOKEN) is None
        assert not await processes.end(child, TOKEN)
        assert is_alive(child)
        assert await life(theirs).find(TOKEN) == child

    asyncio.run(run())


def test_a_child_is_found_though_its_worker_is_reached_by_another_path(tmp_path: Path) -> None:
    """PRC-02, PRC-04: a link to the directory, or a path from elsewhere, is the same place."""

    async def run() -> None:
        child = await started(tmp_path / "here")
        (tmp_path / "link").symlink_to(tmp_path / "here")
        assert await life(tmp_path / "link").find(TOKEN) == child

    asyncio.run(run())


@contextmanager
def under_pid(pid: int) -> Iterator[None]:
    """Have another process live under a free pid; skip the test if the kernel forbids it."""
    with subprocess.Popen(
        [sys.executable, "-I", "-c", START_UNDER_PID, str(pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as starter:
        assert starter.stdout is not None
        said = starter.stdout.readline().decode().strip()
        if said == "forbidden":
            pytest.skip("only a privileged caller may choose a pid")
        assert said == "started"
        yield


START_UNDER_PID = """
import ctypes, errno, os, signal, sys
CLONE3 = 435
pid = (ctypes.c_int32 * 1)(int(sys.argv[1]))
# struct clone_args (clone3(2)): exit_signal is the fifth field, set_tid the ninth.
given = (ctypes.c_uint64 * 11)(0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(pid), 1, 0)
libc = ctypes.CDLL(None, use_errno=True)
child = libc.syscall(CLONE3, ctypes.byref(given), ctypes.sizeof(given))
if child == 0:
    os.execv("/bin/sleep", ["sleep", "60"])
if child < 0 and ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
    raise OSError(ctypes.get_errno(), "clone3")
print("started" if child > 0 else "forbidden", flush=True)
sys.stdin.read()
if child > 0:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


async def free(child: ProcessIdentity) -> None:
    """Wait until a pid names no process and no group, and the clock of start times has moved on."""
    with suppress(ProcessLookupError):
        while True:
            os.killpg(child.pid, 0)
            await asyncio.sleep(0.001)
    later_s = (child.start_time + 1) / os.sysconf("SC_CLK_TCK") - time.clock_gettime(
        time.CLOCK_BOOTTIME
    )
    await asyncio.sleep(max(0, later_s))


def test_a_pid_that_the_kernel_gave_again_is_neither_waited_for_nor_ended(tmp_path: Path) -> None:
    """PRC-03, PRC-07, CP-H4: the child is gone, and its very pid is another process's now."""

    async def run() -> None:
        child = await started(tmp_path)
        # The keeper first: it would tell how its program ended.
        keeper = LIVES[0]._children.pop(child.pid)
        keeper.kill()
        keeper.wait()
        with suppress(ProcessLookupError):  # It had not started its program.
            os.killpg(child.pid, signal.SIGKILL)
        async with asyncio.timeout(5):
            await free(child)
        evidence: dict[str, JsonValue] = {
            "token": TOKEN,
            "pid": child.pid,
            "start_time": child.start_time,
            "boot_id": child.boot_id,
        }
        with under_pid(child.pid):
            stranger = process_under(child.pid)
            assert stranger is not None
            assert stranger != child
            processes = life(tmp_path)
            async with asyncio.timeout(5):
                await processes.wait(child)
                event = await execute(tmp_path, Lines(evidence))
            assert event is not None
            assert event.kind is EventKind.UNKNOWN
            assert not await processes.end(child, TOKEN)
            assert not await processes.end(stranger, TOKEN)
            assert is_alive(stranger)

    asyncio.run(run())


def test_a_worker_that_ends_leaves_its_child_and_a_cancel_ends_it(tmp_path: Path) -> None:
    """PRC-02, CAP-10, ADM-06: and neither waits for the child."""

    async def run() -> None:
        for cancelled in (False, True):
            lines = Lines({"token": TOKEN} if cancelled else None)
            lines.cancelled = cancelled
            going = asyncio.create_task(execute(tmp_path, lines))
            await lines.identified.wait()
            await asyncio.sleep(0.05)
            going.cancel()
            async with asyncio.timeout(5):
                with suppress(asyncio.CancelledError):
                    await going
            found = await life(tmp_path).find(TOKEN)
            assert (found is None) == cancelled

    asyncio.run(run())


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
