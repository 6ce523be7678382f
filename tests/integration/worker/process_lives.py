"""Lives of a worker that start children on a real machine, in one process."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from worker_under_test.adapters.local_processes import LocalProcesses
from worker_under_test.capabilities.command import RunCommand
from worker_under_test.domain.command import Command
from worker_under_test.domain.progress import Checkpoint

if TYPE_CHECKING:
    from pathlib import Path

    from worker_under_test.domain.event import AttemptEvent
    from worker_under_test.domain.json_value import JsonObject
    from worker_under_test.domain.progress import Progress
    from worker_under_test.ports.processes import ProcessIdentity

WAITING = ["/bin/sh", "-c", "echo >begun; read _ <../go; echo >>ran; exit 7"]
"""Waits at a pipe with a name, which `let_go` writes to."""
TOKEN = "command-attempt-1"
DEADLINE_S = 30.0


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

    async def has_identity(self) -> None:
        """Wait until the child's identity is saved, which is after it has begun."""
        async with asyncio.timeout(DEADLINE_S):
            await self.identified.wait()


LIVES: list[LocalProcesses] = []
GATES: list[int] = []


def reap() -> None:
    """Kill and reap what the lives of a test started: here they are all children of one process."""
    for life in LIVES:
        for child in life._children.values():
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    LIVES.clear()
    for gate in GATES:
        os.close(gate)
    GATES.clear()


def life(root: Path) -> LocalProcesses:
    """Return the processes of another life of the worker."""
    LIVES.append(LocalProcesses(root))
    return LIVES[-1]


async def execute(root: Path, lines: Lines) -> AttemptEvent | None:
    """Execute the waiting child's command, with what an earlier life saved."""
    _make_gate(root)
    payload: JsonObject = {"argv": list(WAITING)}
    return await RunCommand(life(root)).execute(Command("p1", "command", 1, payload), lines)


async def started(root: Path, argv: list[str] = WAITING) -> ProcessIdentity:
    """Start a child as an earlier life would have."""
    _make_gate(root)
    earlier = life(root)
    await earlier.prepare(TOKEN)
    return await earlier.spawn(TOKEN, argv)


def let_go(root: Path) -> None:
    """Let the waiting child end, and any other that should not be there."""
    # Kept open, for what is written waits only as long as somebody has the pipe open.
    GATES.append(os.open(root / "go", os.O_RDWR))
    os.write(GATES[-1], b"\n" * 9)


def _make_gate(root: Path) -> None:
    root.mkdir(exist_ok=True)
    with suppress(FileExistsError):
        os.mkfifo(root / "go")
