"""The shortest schedule of a failure, how it was found, and its row in the record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.model.result import ExperimentResult, Verdict
    from harness.model.schedule import Schedule
    from harness.record.failure_schema import MinimalRow


@dataclass(frozen=True, slots=True)
class Tried:
    """A shorter schedule that was tried.

    Attributes:
        schedule: The schedule.
        verdict: What came out.
        taken: Whether the search went on from it.
    """

    schedule: Schedule
    verdict: Verdict
    taken: bool


@dataclass(frozen=True, slots=True)
class Minimal:
    """The shortest schedule that was found.

    Attributes:
        schedule: The schedule.
        tried: What was tried, in order.
        whole: Whether everything was tried; otherwise the budget was used up.
    """

    schedule: Schedule
    tried: tuple[Tried, ...]
    whole: bool

    @property
    def how(self) -> str:
        """How it was found, in one sentence."""
        taken = sum(step.taken for step in self.tried)
        tried = f"{len(self.tried)} shorter schedule{'s' * (len(self.tried) != 1)} tried"
        end = "" if self.whole else "; the budget was used up, so a shorter one may exist"
        if not taken:
            return f"{tried}, none broke the same promise{end}"
        return f"{tried}, {taken} broke the same promise{end}"


def minimal_row(found: Minimal) -> MinimalRow:
    """Return what a record says of the shortest schedule."""
    return {
        "schedule": str(found.schedule),
        "how": found.how,
        "steps": [
            {"schedule": str(step.schedule), "verdict": step.verdict.value, "taken": step.taken}
            for step in found.tried
        ],
    }


def unshrunk_row(result: ExperimentResult) -> MinimalRow:
    """Return what a record says of the shortest schedule when none was looked for."""
    single = len(result.schedule.moments) <= 1
    how = "There is nothing to leave out" if single else "No shorter one was looked for"
    return {"schedule": str(result.schedule), "how": how, "steps": []}
