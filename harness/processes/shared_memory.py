"""Named shared memory: what is under ``/dev/shm``, and which of it a worker has.

It is nobody's directory: it outlives a kill, is no part of a workspace, and is seen by every other
process of the machine (shm_overview(7)). So a name that came up there is taken for a worker's only
if one of its processes has it open or mapped.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

DIRECTORY = "/dev/shm"  # noqa: S108 - looked at; what is deleted there is proved to be a worker's

_SETTLED_NS = 100_000_000
_listed: tuple[tuple[int, int, int] | None, frozenset[str]] = (None, frozenset())


def names() -> frozenset[str]:
    """Return every name that there is, of segments, named semaphores and directories."""
    global _listed  # noqa: PLW0603 - what is remembered of the only such directory
    try:
        status = os.stat(DIRECTORY)  # noqa: PTH116 - in every experiment
        stamp = (status.st_dev, status.st_ino, status.st_mtime_ns)
        if _listed[0] == stamp:
            return _listed[1]
        found = frozenset(os.listdir(DIRECTORY))  # noqa: PTH208
    except OSError:  # there is none in every container
        return frozenset()
    # The clock of a file system may stand still for a moment, and what came up in the same moment
    # would not be seen next time.
    settled = time.time_ns() - status.st_mtime_ns > _SETTLED_NS
    _listed = (stamp if settled else None, found)
    return found


def new_segments(known: frozenset[str]) -> frozenset[str]:
    """Return the names of the segments and named semaphores that have come up.

    Args:
        known: The names that were there before.
    """
    return frozenset(name for name in names() - known if Path(DIRECTORY, name).is_file())


def held_by(pids: Iterable[int], names: frozenset[str]) -> frozenset[str]:
    """Return those segments that processes have open or mapped (proc(5)).

    Args:
        pids: The processes; those that are gone hold nothing.
        names: The segments that are asked for.
    """
    paths: set[str] = set()
    for pid in pids:
        paths |= _mapped_by(pid)
        with suppress(OSError):
            for opened in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    paths.add(str(opened.readlink()))
    return frozenset(name for name in names if f"{DIRECTORY}/{name}" in paths)


def remove(names: Iterable[str]) -> None:
    """Delete segments that are proved to be a worker's; one that is gone is no matter."""
    for name in names:
        with suppress(OSError):
            Path(DIRECTORY, name).unlink()


def _mapped_by(pid: int) -> set[str]:
    maps = Path(f"/proc/{pid}/maps")
    try:
        with maps.open(encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.rstrip("\n") for line in file if f" {DIRECTORY}/" in line]
    except OSError:
        return set()
    return {line[line.index(DIRECTORY) :] for line in lines if not line.endswith(" (deleted)")}
