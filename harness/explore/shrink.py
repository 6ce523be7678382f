"""Shrink: make a schedule of several crashes shorter while the same promise stays broken.

One incarnation after the other is left out, and the rest is run again. What the run has tried
already is not run twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.experiment.lane import Job
from harness.model.events import FailureShrunk, ShorterTried, ShrinkingStarted, ignore
from harness.model.result import Verdict
from harness.model.schedule import Schedule
from harness.record.minimal import Minimal, Tried

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.explore.executor import Executor
    from harness.model.events import EventHandler
    from harness.model.result import ExperimentResult

RUNS = 60
"""How many experiments a run may add to shrink its failures."""
RUNS_EACH = 12
"""How many of them for one failure."""


@dataclass(slots=True)
class Shrinker:
    """Shrinks the failures of a run within one budget.

    Attributes:
        executor: Runs the experiments; the scenarios have been prepared.
        emit: Is told of each experiment and of what was found.
        known: Results of the run, by scenario and schedule.
        left: How many experiments may still be run.
        found: The shortest schedules so far, by fingerprint. What was found stays here when
            shrinking is interrupted.
    """

    executor: Executor
    emit: EventHandler = ignore
    known: dict[tuple[str, Schedule, int], ExperimentResult] = field(default_factory=dict)
    left: int = RUNS
    found: dict[str, Minimal] = field(default_factory=dict)

    def shrink_all(self, results: Iterable[ExperimentResult]) -> dict[str, Minimal]:
        """Shrink every broken schedule of several incarnations.

        Args:
            results: The results of the run, in order.

        Returns:
            The shortest schedules by fingerprint.
        """
        given = tuple(results)
        self.known.update({(r.scenario, r.schedule, r.seed): r for r in given})
        failures = [
            result
            for result in given
            if result.verdict is Verdict.BROKEN and len(result.schedule.incarnations) > 1
        ]
        if failures:
            self.emit(ShrinkingStarted(len(failures), min(self.left, RUNS_EACH * len(failures))))
        for failure in failures:
            shortest = self._shrink(failure)
            self.found[failure.fingerprint] = shortest
            self.emit(FailureShrunk(failure.fingerprint, str(shortest.schedule)))
        return self.found

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
        self.emit(ShorterTried(result))
        return result
