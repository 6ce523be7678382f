"""Experiments that cannot be judged, and whose doing an error is."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from harness.images.tree import room_bytes
from harness.model.bounds import MIB
from harness.model.result import ExperimentResult, Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.schedule import Schedule

_OF_THE_MACHINE = frozenset(
    {
        errno.EDQUOT,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ENOSPC,
        errno.EROFS,
    }
)
"""What no worker can bring about by what it does to its directories."""

_MUCH_MIB = 128
"""How much a worker may write before it is the one that has filled the disk."""


def unjudged(scenario: str, schedule: Schedule, seed: int, why: str) -> ExperimentResult:
    """Return what an experiment comes to that could not be judged.

    Args:
        scenario: Name of its scenario.
        schedule: Its schedule.
        seed: Its seed.
        why: Why, for the reader.
    """
    return ExperimentResult(scenario, schedule, seed, Verdict.UNKNOWN, note=why)


def doing_of_worker(error: OSError, scratch: Path, workspace: Path) -> str:
    """Say what a worker has done if an error is its doing; nothing if it is not.

    Args:
        error: What happened to the harness when it used a file.
        scratch: Directory of all that the lane has.
        workspace: That of the experiment, in it.
    """
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        most = _MUCH_MIB * MIB
        if room_bytes(workspace, most) > most:
            return (
                f"what the worker has written and the images of it take more than {_MUCH_MIB} MiB, "
                f"and the disk of {scratch.parent} is full; give --root a directory with more room"
            )
    if error.errno in _OF_THE_MACHINE:
        return ""
    names = [str(name) for name in (error.filename, error.filename2) if name is not None]
    if not any(name.startswith(f"{scratch}{os.sep}") for name in names):
        return ""
    return (
        "the worker has removed or replaced files beside its own directory, so nothing can be said "
        f"of it: {error.strerror}: {', '.join(map(repr, names))}"
    )
