"""Children that can be watched, and what becomes of them while the worker is down."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sqlite3
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from worker_under_test.adapters.local_processes import LocalProcesses

if TYPE_CHECKING:
    from worker_under_test.ports.processes import ProcessIdentity

LEDGER_VARIABLE = "SCENARIO_LEDGER"
SECOND_LIFE = 2
LOOK_S = 0.002
_DYING_MS = 5000

# Where a process waits until it is let go on: a pipe in its directory, named by its pid. Under that
# name it is there as soon as a line in it will be read. A pipe is nothing durable, so no pid is
# part of what a crash image holds.
_GATE = """
mkfifo "gate.$me.new" && exec 3<>"gate.$me.new" && mv "gate.$me.new" "gate.$me"
read -r _ <&3
"""
_RECORD = """
record() {
    printf '{"kind": "%s", "key": "%s", "token": "%s"}\\n' "$1" "$2" "$WORKER_PROCESS_TOKEN" \\
        >>"$SCENARIO_LEDGER"
}
"""

CHILD = f"""{_RECORD}
me=$PPID
record process "$1"
{_GATE}
record process_end "$1"
echo "$2"
exit "$3"
"""
"""A child's program: records that it ran, and goes on when it is waited for."""

STRANGER = "stranger"
"""The effect that a stranger is there; it runs under this name with its key."""
WENT_ON = "stranger_went_on"
_STRANGER = f"""{_RECORD}
me=$$
record {STRANGER} "$1"
{_GATE}
record {WENT_ON} "$1"
"""


class WatchedProcesses(LocalProcesses):
    """Children that have begun when `spawn` returns, and end only while they are waited for.

    So what they leave does not depend on how fast the machine is: the effect is recorded before
    anything that follows the start, and the end comes after everything that precedes the wait.
    """

    async def spawn(self, token: str, argv: list[str]) -> ProcessIdentity:
        """Start a child and see it stand at its gate."""
        identity = await super().spawn(token, argv)
        gate = _gate(self.directory(token), identity.pid)
        while not gate.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(LOOK_S)
        return identity

    async def wait(self, identity: ProcessIdentity) -> None:
        """Let a process go on, and wait for it; the others stand where they are."""
        let_go_on(identity.pid)
        await super().wait(identity)


def let_go_on(pid: int) -> None:
    """Let the process under a pid go on; does nothing if it is gone."""
    with suppress(FileNotFoundError):
        gate = _gate(Path(f"/proc/{pid}/cwd").readlink(), pid)
        held = os.open(gate, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.write(held, b"\n")
        os.close(held)


def kill_children(worker_dir: Path, incarnation: int) -> None:
    """Kill the children that outlived the first life, before the second begins."""
    # A keeper first: it would tell how its program ended.
    for pid in _living(worker_dir) if incarnation == SECOND_LIFE else ():
        held = os.pidfd_open(pid)
        signal.pidfd_send_signal(held, signal.SIGKILL)
        _see_end(held)


def reuse_pids(worker_dir: Path, incarnation: int) -> None:
    """Let the children of the first life end, and see their saved pids belong to strangers.

    The kernel lets only the privileged choose a pid, and one is not free before the supervisor has
    reaped what had it. So the record is brought to the pid: a stranger is started, and its pid is
    saved in place of the child's. What the worker can see is the same: under the saved pid lives
    another process, which began at another time and has no token. What is over is left alone.
    """
    if incarnation != SECOND_LIFE:
        return
    for pid in [each for each in _living(worker_dir) if os.getsid(each) == each]:
        held = os.pidfd_open(pid)
        let_go_on(pid)
        _see_end(held)
    with closing(sqlite3.connect(worker_dir / "worker.db")) as database, database:
        saved = database.execute(
            "SELECT attempt_id, command_id, data ->> '$.evidence.start_time'"
            " FROM checkpoints JOIN attempts USING (attempt_id)"
            " WHERE data ->> '$.evidence.pid' IS NOT NULL"
            " AND attempt_id NOT IN (SELECT attempt_id FROM results)"
        ).fetchall()
        for attempt_id, command_id, start_time in saved:
            database.execute(
                "UPDATE checkpoints SET data = json_set(data, '$.evidence.pid', ?)"
                " WHERE attempt_id = ?",
                (_start_stranger(command_id, start_time), attempt_id),
            )


def _start_stranger(key: str, after_tick: int) -> int:
    """Start a process that is nobody's child of ours, later than a tick of the kernel's clock."""
    directory = Path(os.environ[LEDGER_VARIABLE]).parent / "strangers"
    directory.mkdir(exist_ok=True)
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    while time.clock_gettime(time.CLOCK_BOOTTIME) * ticks_per_s < after_tick + 1:
        time.sleep(LOOK_S)
    stranger = subprocess.Popen(  # noqa: S603 - a fixed program
        [f"{STRANGER}:{key}", "-c", _STRANGER, STRANGER, key],
        executable="/bin/sh",
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while not _gate(directory, stranger.pid).exists():
        time.sleep(LOOK_S)
    return stranger.pid


def _living(worker_dir: Path) -> list[int]:
    """Return the pids of what lives of the children; keepers, which lead sessions, first."""
    processes = worker_dir / "processes"
    tokens = [path.name for path in sorted(processes.iterdir())] if processes.is_dir() else []
    found = [each.pid for token in tokens for each in LocalProcesses(processes).carriers(token)]
    return sorted(found, key=lambda pid: os.getsid(pid) != pid)


def _gate(directory: Path, pid: int) -> Path:
    return directory / f"gate.{pid}"


def _see_end(held: int) -> None:
    """Wait for the end of a process by its pidfd, and close that."""
    ended = select.poll()
    ended.register(held, select.POLLIN)
    if not ended.poll(_DYING_MS):
        raise TimeoutError("a child did not end")
    os.close(held)
