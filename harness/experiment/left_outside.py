"""What a worker leaves outside of its workspace: named shared memory, sockets, files elsewhere.

It is in no crash image, and the next experiment finds it. So it is reported, nothing is shared by
experiments that have left such things, and shared memory that is proved to be the worker's is
deleted. A file elsewhere is not: it may have been there before.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from harness.model.regular_file import open_regular
from harness.processes.linux import descendants
from harness.processes.shared_memory import DIRECTORY, held_by, names, new_segments, remove

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_DRAWN = re.compile(r"[0-9a-f]{6,}|[0-9]{2,}")
"""What is likely to be another in each process: a pid, or something random."""

_MOST = 20


class LeftOutside:
    """What an experiment's worker has left outside so far.

    Args:
        supervisor_pid: The process below which all of the worker's are.
    """

    def __init__(self, supervisor_pid: int) -> None:
        self._supervisor_pid = supervisor_pid
        self._before = names()
        self._ours: frozenset[str] = frozenset()

    def look(self) -> None:
        """Find out whose the new segments are; best while the worker stands still."""
        if unknown := new_segments(self._before) - self._ours:
            self._ours |= held_by(descendants(self._supervisor_pid), unknown)

    @property
    def appeared(self) -> bool:
        """Whether there are segments that were not there before, whoever has made them."""
        return bool(new_segments(self._before))

    def found(self, notes: Iterable[Path]) -> tuple[str, ...]:
        """Return what was left, in words, sorted; what is drawn in names is shown as ``*``.

        Args:
            notes: Files of `harness.processes.watch_outside`; they need not be there.
        """
        noted: set[str] = set()
        for file in notes:
            # The worker did nothing outside, or has put something in its place.
            with suppress(OSError), open_regular(str(file)) as lines:
                noted.update(os.fsdecode(lines.read()).splitlines())
        new = new_segments(self._before)
        self._ours |= {name for name in new if f"{DIRECTORY}/{name}" in noted}
        left = noted | {f"{DIRECTORY}/{name}" for name in self._ours}
        masked = sorted({_DRAWN.sub("*", path) for path in left})
        if len(masked) > _MOST:
            return (*masked[:_MOST], f"... and {len(masked) - _MOST} more")
        return tuple(masked)

    def clear(self) -> None:
        """Delete the segments that are proved to be the worker's."""
        remove(self._ours)
