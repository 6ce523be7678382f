"""Processes: what is left running when it should not be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.oracles.oracle import Finding, broken_if

if TYPE_CHECKING:
    from harness.oracles.oracle import Evidence


@dataclass(frozen=True, slots=True)
class NoSurvivors:
    """No process of the worker outlives its last incarnation."""

    name: str = "no-survivors"
    promise: str = "no process of the worker is left when every incarnation is dead"
    remedy: str = (
        "Tie children to the worker: let the kernel end them with their parent, or find them "
        "again by a saved identity."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Report each process that was still there."""
        return broken_if(f"still running: {survivor}" for survivor in evidence.survivors)
