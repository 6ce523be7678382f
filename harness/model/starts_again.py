"""The promise that every worker makes, whatever its scenario names: it starts again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.model.oracle import Finding, broken_if

if TYPE_CHECKING:
    from harness.model.oracle import Evidence


@dataclass(frozen=True, slots=True)
class StartsAgain:
    """After any strike the worker starts again and becomes quiet, and once more after that.

    Every scenario is judged by it. It says nothing of a worker whose control leg fails: that one
    does not start at all.
    """

    name: str = "starts-again"
    promise: str = "after any strike the worker starts again and becomes quiet"
    remedy: str = (
        "Let a start take whatever a killed one can leave: a torn or empty file, a stale lock, pid "
        "or socket file, a half-made database; write such files aside and rename them."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Look whether the recovery, or the restart after it, failed."""
        return broken_if([evidence.failed] if evidence.failed else [])


STARTS_AGAIN = StartsAgain()
