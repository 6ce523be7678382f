"""Shrink: make a schedule of several crashes shorter while the same promise stays broken.

One incarnation after the other is left out, and the rest is run again. What the run has tried
already is not run twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.experiment.lane import Job
from harness.model.result import Verdict
from harness.model.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.explore.executor import Executor
    from harness.model.result import ExperimentResult
    from harness.record.failure_schema import MinimalRow

RUNS = 60
"""How many experiments a run may add to shrink its failures."""
RUNS_EACH = 12
"""How many of them for one failure."""


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


@dataclass(slots=True)
class Shrinker:
    """Shrinks the failures of a run within one budget.

    Attributes:
        executor: Runs the experiments; the scenarios have been prepared.
        known: Results of the run, by scenario and schedule.
        left: How many experiments may still be run.
    """

    executor: Executor
    known: dict[tuple[str, Schedule, int], ExperimentResult] = field(default_factory=dict)
    left: int = RUNS

    def shrink_all(self, results: Iterable[ExperimentResult]) -> dict[str, Minimal]:
        """Shrink every broken schedule of several incarnations.

        Args:
            results: The results of the run, in order.

        Returns:
            The shortest schedules by fingerprint.
        """
        given = tuple(results)
        self.known.update({(r.scenario, r.schedule, r.seed): r for r in given})
        return {
            result.fingerprint: self._shrink(result)
            for result in given
            if result.verdict is Verdict.BROKEN and len(result.schedule.incarnations) > 1
        }

    def _shrink(self, broken: ExperimentResult) -> Minimal:
        best = broken.schedule
        tried: list[Tried] = []
        runs = 0
        again = True
        while again and len(best.incarnations) > 1:
            again = False
            for index in range(len(best.incarnations)):
                shorter = Schedule(best.incarnations[:index] + best.incarnations[index + 1 :])
                result = self.known.get((broken.scenario, shorter, broken.seed))
                if result is None:
                    if runs >= RUNS_EACH or self.left <= 0:
                        return Minimal(best, tuple(tried), whole=False)
                    runs += 1
                    result = self._run(broken, shorter)
                taken = bool(set(result.oracles) & set(broken.oracles))
                tried.append(Tried(shorter, result.verdict, taken))
                if taken:
                    best, again = shorter, True
                    break
        return Minimal(best, tuple(tried), whole=True)

    def _run(self, broken: ExperimentResult, schedule: Schedule) -> ExperimentResult:
        self.left -= 1
        job = Job(broken.scenario, schedule, broken.seed)
        ((_, result),) = self.executor.run([job], keep=False)
        self.known[broken.scenario, schedule, broken.seed] = result
        return result
