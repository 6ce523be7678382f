"""Whose a process is: known by token, directory, pid, start time and boot, and by no less."""

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
from process_lives import DEADLINE_S, LIVES, TOKEN, Lines, execute, life, reap, started

from worker_under_test.adapters.local_processes import (
    TOKEN_VARIABLE,
    boot_id,
    is_alive,
    process_under,
)
from worker_under_test.domain.event import EventKind
from worker_under_test.ports.processes import ProcessIdentity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker_under_test.domain.json_value import JsonValue


@pytest.fixture(autouse=True)
def _reap() -> Iterator[None]:
    """Leave no child behind."""
    yield
    reap()


@pytest.mark.requirement("PRC-03", "PRC-06", "PRC-07", "CP-H4")
@pytest.mark.parametrize(
    "other",
    [{"start_time": 1}, {"boot_id": "another"}, {"pid": 1}],
)
def test_another_process_under_the_pid_is_neither_waited_for_nor_ended(
    tmp_path: Path, other: dict[str, object]
) -> None:
    """A pid alone means nothing, nor does one of another boot."""

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


@pytest.mark.requirement("PRC-07")
def test_a_foreign_process_with_the_same_command_line_is_not_ours(tmp_path: Path) -> None:
    """Without the token it is not found, and not ended though it is named."""
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


@pytest.mark.requirement("PRC-04", "PRC-07")
def test_two_workers_with_one_token_have_each_its_own_child(tmp_path: Path) -> None:
    """Attempt ids are unique in one worker; the other's child is not ours.

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


@pytest.mark.requirement("PRC-02", "PRC-04")
def test_a_child_is_found_though_its_worker_is_reached_by_another_path(tmp_path: Path) -> None:
    """A link to the directory, or a path from elsewhere, is the same place."""

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


@pytest.mark.requirement("PRC-03", "PRC-07", "CP-H4")
def test_a_pid_that_the_kernel_gave_again_is_neither_waited_for_nor_ended(tmp_path: Path) -> None:
    """The child is gone, and its very pid is another process's now."""

    async def run() -> None:
        child = await started(tmp_path)
        # The keeper first: it would tell how its program ended.
        keeper = LIVES[0]._children.pop(child.pid)
        keeper.kill()
        keeper.wait()
        with suppress(ProcessLookupError):  # It had not started its program.
            os.killpg(child.pid, signal.SIGKILL)
        async with asyncio.timeout(DEADLINE_S):
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
            async with asyncio.timeout(DEADLINE_S):
                await processes.wait(child)
                event = await execute(tmp_path, Lines(evidence))
            assert event is not None
            assert event.kind is EventKind.UNKNOWN
            assert not await processes.end(child, TOKEN)
            assert not await processes.end(stranger, TOKEN)
            assert is_alive(stranger)

    asyncio.run(run())
