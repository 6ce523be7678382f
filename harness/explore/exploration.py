"""One scenario on its way through its plan: which schedules come next, and what came of the others.

A plan is a generator of rounds (`harness.explore.tiers`). Its results are kept as they come in, so
an exploration that is cut short anywhere knows what it has found until then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.explore.tiers import TIERS
from harness.model.errors import UnknownNameError
from harness.model.result import Verdict
from harness.model.schedule import CONTROL
from harness.moments.catalogue import scan
from harness.record.fork_sample import NO_SAMPLE
from harness.record.outcome import ScenarioRun

if TYPE_CHECKING:
    from harness.explore.tiers import Rounds
    from harness.model.result import ExperimentResult
    from harness.model.schedule import Schedule
    from harness.scenario import Scenario


def check_schedule(schedule: Schedule, scenario: Scenario) -> None:
    """See that every moment of a schedule is declared by the worker of a scenario.

    Raises:
        UnknownNameError: One is not; the message has the nearest label or context key.
    """
    if scenario.points:
        scan(scenario.points).check(schedule)


class Exploration:
    """The plan of a scenario and the results that it has so far.

    Known-bad workers are there to be caught: scenarios pinned broken run the tier that must catch
    them (`harness.scenario.Pin.tier`), `smoke` if nothing is said, whatever tier is asked for.

    Args:
        scenario: The scenario.
        tier: Name of the tier that is asked for.
        seed: Source of everything that the tier draws.
        at: The control leg and this schedule alone, instead of the tier.

    Attributes:
        scenario: The scenario.
        catalogue: The points that its worker declares.
        of_a_tier: Whether it is a tier that is run, and not one schedule.
        tier: The tier that its plan is: for a scenario that is pinned broken, that of its pin.
        sample: How experiments of it compare with those of an interpreter per incarnation.

    Raises:
        UnknownNameError: The tier is not known, or a label of `at` or of `Scenario.strike` is not.
    """

    def __init__(
        self, scenario: Scenario, tier: str, seed: int, at: Schedule | None = None
    ) -> None:
        if tier not in TIERS:
            raise UnknownNameError("tier", tier, TIERS)
        self.scenario = scenario
        self.catalogue = scan(scenario.points)
        for label in scenario.strike:
            self.catalogue[label]
        if at is not None:
            check_schedule(at, scenario)
        self.of_a_tier = at is None
        self.tier = scenario.pin.tier if scenario.pin.outcome == "broken" else tier
        self.sample = NO_SAMPLE
        self._plan = _only(at) if at is not None else _tier(scenario, self.tier, seed)
        self._planned: list[Schedule] = []
        self._results: dict[Schedule, ExperimentResult] = {}
        self._bounds: tuple[str, ...] = ()
        self._round = next(self._plan)
        self._planned += self._round
        self.finished = False
        """Whether the plan is through."""

    @property
    def digests(self) -> bool:
        """Whether the tier compares crash images."""
        return self.tier != "smoke"

    @property
    def wanted(self) -> tuple[Schedule, ...]:
        """Schedules of the round that have no result yet; none when the plan is through."""
        if self.finished:
            return ()
        return tuple(s for s in dict.fromkeys(self._round) if s not in self._results)

    @property
    def results(self) -> tuple[ExperimentResult, ...]:
        """The results so far: those of the plan in its order, then any others."""
        order = dict.fromkeys([*self._planned, *self._results])
        return tuple(self._results[schedule] for schedule in order if schedule in self._results)

    def add(self, result: ExperimentResult) -> None:
        """Take in a result, and go on to the next round when it was the last of this one.

        Args:
            result: Of any schedule; one that the plan does not have is kept beside it, and one
                that is known already is replaced.
        """
        self._results[result.schedule] = result
        while not self.finished and not self.wanted:
            try:
                self._round = self._plan.send([self._results[s] for s in self._round])
                self._planned += self._round
            except StopIteration as end:
                self._bounds = end.value
                self.finished = True

    def summary(self) -> ScenarioRun:
        """Return what is known of the scenario now."""
        return ScenarioRun(
            self.scenario,
            self.catalogue,
            _judged_by_control(self.results),
            whole=self.of_a_tier and self.finished,
            bounds=self._bounds,
            finished=self.finished,
            sample=self.sample,
        )


def _tier(scenario: Scenario, tier: str, seed: int) -> Rounds:
    strike = frozenset(scenario.strike)
    return TIERS[tier](lambda label: not strike or label in strike, seed)


def _only(schedule: Schedule) -> Rounds:
    yield [CONTROL]
    if schedule != CONTROL:
        yield [schedule]
    return ()


def _judged_by_control(results: tuple[ExperimentResult, ...]) -> tuple[ExperimentResult, ...]:
    """Make every verdict unknown when the control leg did not hold."""
    if not results or results[0].verdict is Verdict.HELD:
        return results
    control, *others = results
    note = f"the control leg was {control.verdict}"
    return (
        control,
        *(replace(r, verdict=Verdict.UNKNOWN, violations=(), note=note) for r in others),
    )
