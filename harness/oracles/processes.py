"""Processes: those that are left running, and those of others that were touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from harness.model.oracle import Finding, broken_if

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.oracle import Evidence

StrangerReader: TypeAlias = Callable[[Path], tuple[str, ...]]
"""Reads names of strangers from a world's directory; the command line of each begins with its."""


@dataclass(frozen=True, slots=True)
class NoSurvivors:
    """No process of the worker outlives its last incarnation.

    Attributes:
        strangers: What the command line of a process begins with that is not the worker's; empty
            if there is none.
    """

    name: str = "no-survivors"
    promise: str = "no process of the worker is left when every incarnation is dead"
    remedy: str = (
        "Tie children to the worker: let the kernel end them with their parent, or find them "
        "again by a saved identity."
    )
    strangers: str = ""

    def check(self, evidence: Evidence) -> Finding:
        """Report each process that was still there."""
        return broken_if(
            f"still running: {survivor}"
            for survivor in evidence.survivors
            if not self.strangers or f": {self.strangers}" not in survivor
        )


@dataclass(frozen=True, slots=True)
class StrangersLeftAlone:
    """Nothing is done to a process that is not the worker's (PRC-03, PRC-07).

    Attributes:
        there: Reader of the strangers that there are.
        disturbed: Reader of those to which something was done, by their own record.
    """

    there: StrangerReader
    disturbed: StrangerReader
    name: str = "strangers-left-alone"
    promise: str = "a process that is not the worker's is neither waited for nor ended"
    remedy: str = (
        "Save the start time and the boot beside a pid, and compare all three before touching the "
        "process: the kernel reuses pids."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Look at the strangers at the very end."""
        return broken_if(self._faults(evidence))

    def _faults(self, evidence: Evidence) -> Iterator[str]:
        final = evidence.final
        disturbed = final.read(self.disturbed, final.world_dir)
        for stranger in sorted(final.read(self.there, final.world_dir)):
            if stranger in disturbed:
                yield f"{stranger!r} was taken for a process of the worker"
            elif not any(f": {stranger} " in survivor for survivor in evidence.survivors):
                yield f"{stranger!r} was ended"
