"""Lives of a worker that start children on a real machine, in one process."""

from __future__ import annotations

import asyncio
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


def reap() -> None:
    """Kill and reap what the lives of a test started: here they are all children of one process."""
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
