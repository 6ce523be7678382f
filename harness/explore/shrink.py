"""Shrink: make a schedule of several crashes shorter while the same promise stays broken.

One incarnation after the other is left out, and the rest is run again. What the run has tried
already is not run twice. Tries are run once each; the one that the search ends with is confirmed as
any other failure is, and where it is flaky the search takes another way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from harness.experiment.lane import Job
from harness.model.events import FailureShrunk, ShorterTried, ShrinkingStarted, ignore
from harness.model.result import Verdict
from harness.model.schedule import Schedule
from harness.record.minimal import Minimal, Tried

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.explore.experiment_runner import ExperimentRunner
    from harness.model.events import EventHandler
    from harness.model.result import ExperimentResult

_Key: TypeAlias = tuple[str, Schedule, int]
"""Scenario, schedule and seed."""

RUNS = 60
"""How many schedules a run may try to shrink its failures."""
RUNS_EACH = 12
"""How many of them for one failure."""


@dataclass(slots=True)
class Shrinker:
    """Shrinks the failures of a run within one budget.

    Attributes:
        executor: Runs the experiments; the scenarios have been prepared.
        emit: Is told of each experiment and of what was found.
        known: Results of the run, by scenario and schedule.
        left: How many schedules may still be tried.
        found: The shortest schedules so far, by fingerprint. What was found stays here when
            shrinking is interrupted.
    """

    executor: ExperimentRunner
    emit: EventHandler = ignore
    known: dict[_Key, ExperimentResult] = field(default_factory=dict)
    left: int = RUNS
    found: dict[str, Minimal] = field(default_factory=dict)
    _unconfirmed: set[_Key] = field(default_factory=set)
    _left_for_it: int = 0

    def shrink_all(self, results: Iterable[ExperimentResult]) -> dict[str, Minimal]:
        """Shrink every broken schedule of several incarnations.

        Args:
            results: The results of the run, in order.

        Returns:
            The shortest schedules by fingerprint.
        """
        given = tuple(results)
        self.known.update({_key(r, r.schedule): r for r in given})
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
        """Search until what is found has been confirmed; a try that was flaky is known by then."""
        self._left_for_it = RUNS_EACH
        while True:
            found = self._search(broken)
            if _key(broken, found.schedule) not in self._unconfirmed:
                return found
            self._run(broken, found.schedule, confirm=True)

    def _search(self, broken: ExperimentResult) -> Minimal:
        best = broken.schedule
        tried: list[Tried] = []
        again = True
        while again and len(best.incarnations) > 1:
            again = False
            for index in range(len(best.incarnations)):
                shorter = Schedule(best.incarnations[:index] + best.incarnations[index + 1 :])
                result = self.known.get(_key(broken, shorter))
                if result is None:
                    if self._left_for_it <= 0 or self.left <= 0:
                        return Minimal(best, tuple(tried), whole=False)
                    self._left_for_it -= 1
                    self.left -= 1
                    result = self._run(broken, shorter, confirm=False)
                taken = bool(set(result.oracles) & set(broken.oracles))
                tried.append(Tried(shorter, result.verdict, taken))
                if taken:
                    best, again = shorter, True
                    break
        return Minimal(best, tuple(tried), whole=True)

    def _run(
        self, broken: ExperimentResult, schedule: Schedule, *, confirm: bool
    ) -> ExperimentResult:
        job = Job(broken.scenario, schedule, broken.seed, confirm=confirm)
        ((_, result),) = self.executor.run([job], keep=False)
        key = _key(broken, schedule)
        self.known[key] = result
        if confirm:
            self._unconfirmed.discard(key)
        else:
            self._unconfirmed.add(key)
            self.emit(ShorterTried(result))
        return result


def _key(broken: ExperimentResult, schedule: Schedule) -> _Key:
    return broken.scenario, schedule, broken.seed
