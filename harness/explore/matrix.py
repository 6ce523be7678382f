"""The matrix: run scenarios through a tier, or through one schedule, to their outcomes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from harness.experiment.lane import Job
from harness.explore.tiers import TIERS, smoke
from harness.model.errors import UnknownNameError
from harness.model.events import ExperimentFinished, Planned, RunFinished, RunStarted
from harness.model.result import Verdict
from harness.model.schedule import CONTROL
from harness.moments.catalogue import scan
from harness.record.outcome import ScenarioOutcome, join_groups

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.explore.executor import Executor
    from harness.explore.tiers import Rounds
    from harness.model.events import EventHandler
    from harness.model.result import ExperimentResult
    from harness.model.schedule import Schedule
    from harness.moments.catalogue import Catalogue
    from harness.scenario import Scenario

T = TypeVar("T")


def check_schedule(schedule: Schedule, scenarios: Iterable[Scenario]) -> None:
    """See that every label of a schedule is declared by the worker of each scenario.

    Raises:
        UnknownNameError: One is not; the message carries the nearest label.
    """
    for scenario in scenarios:
        catalogue = scan(scenario.points)
        if scenario.points:
            for moment in schedule.moments:
                catalogue[moment.label]


def run_matrix(
    scenarios: Sequence[Scenario],
    executor: Executor,
    emit: EventHandler,
    *,
    tier: str = "smoke",
    at: Schedule | Mapping[str, Schedule] | None = None,
    seed: int = 0,
    lanes: int = 0,
    groups: Mapping[str, frozenset[str]] | None = None,
) -> tuple[ScenarioOutcome, ...]:
    """Run scenarios.

    Known-bad workers are there to be caught, which the smallest tier must do: scenarios pinned
    broken run `smoke` in every tier.

    Args:
        scenarios: What to run.
        executor: Runs the experiments.
        emit: Is told what happens.
        tier: Name of the tier.
        at: Run the control leg and this schedule alone, instead of a tier; or one for each scenario
            by its name.
        seed: Source of everything random.
        lanes: How many experiments run at once, to be told.
        groups: Names of all scenarios that reach their points together, by their word for it. A
            group of which not all are run is not judged by points that were not reached.

    Returns:
        One outcome per scenario, in their order.

    Raises:
        UnknownNameError: The tier is not known, or a label of `at` or `Scenario.strike` is not.
        HarnessError: The harness failed.
    """
    if tier not in TIERS:
        raise UnknownNameError("tier", tier, TIERS)
    chosen = at if isinstance(at, Mapping) else {s.name: at for s in scenarios if at is not None}
    for scenario in scenarios:
        if scenario.name in chosen:
            check_schedule(chosen[scenario.name], [scenario])
    catalogues = [_catalogue(scenario) for scenario in scenarios]
    began = time.monotonic()
    emit(RunStarted(tuple(s.name for s in scenarios), "" if chosen else tier, seed, lanes))
    executor.prepare(scenarios)
    plans = [_plan(scenario, tier, chosen.get(scenario.name), seed) for scenario in scenarios]
    results = _run_plans(scenarios, plans, executor, emit, seed=seed, digests=tier != "smoke")
    emit(RunFinished(time.monotonic() - began))
    return join_groups(
        tuple(
            ScenarioOutcome(
                scenario,
                catalogue,
                _judged_by_control(done),
                whole=scenario.name not in chosen,
                bounds=bounds,
            )
            for scenario, catalogue, (done, bounds) in zip(
                scenarios, catalogues, results, strict=True
            )
        ),
        groups or {},
    )


def _catalogue(scenario: Scenario) -> Catalogue:
    catalogue = scan(scenario.points)
    for label in scenario.strike:
        catalogue[label]
    return catalogue


def _plan(scenario: Scenario, tier: str, at: Schedule | None, seed: int) -> Rounds:
    if at is not None:
        return _only(at)
    explore = smoke if scenario.pin.outcome == "broken" else TIERS[tier]
    strike = frozenset(scenario.strike)
    return explore(lambda label: not strike or label in strike, seed)


def _only(schedule: Schedule) -> Rounds:
    yield [CONTROL]
    if schedule != CONTROL:
        yield [schedule]
    return ()


def _run_plans(
    scenarios: Sequence[Scenario],
    plans: list[Rounds],
    executor: Executor,
    emit: EventHandler,
    *,
    seed: int,
    digests: bool,
) -> list[tuple[list[ExperimentResult], tuple[str, ...]]]:
    """Run the rounds of all plans in step, so that every lane has something to do."""
    results: list[list[ExperimentResult]] = [[] for _ in plans]
    bounds: list[tuple[str, ...]] = [()] * len(plans)
    rounds: dict[int, list[Schedule]] = {n: next(plan) for n, plan in enumerate(plans)}
    while rounds:
        jobs = [
            (number, Job(scenarios[number].name, schedule, seed, digests=digests))
            for number, schedules in rounds.items()
            for schedule in schedules
        ]
        emit(Planned(len(jobs)))
        done: list[ExperimentResult | None] = [None] * len(jobs)
        for index, result in executor.run([job for _, job in jobs]):
            done[index] = result
            emit(ExperimentFinished(result))
        by_plan: dict[int, list[ExperimentResult]] = {number: [] for number in rounds}
        for (number, _), finished in zip(jobs, done, strict=True):
            if finished is not None:
                by_plan[number].append(finished)
        rounds = {}
        for number, finished_round in by_plan.items():
            results[number].extend(finished_round)
            try:
                rounds[number] = plans[number].send(finished_round)
            except StopIteration as end:
                bounds[number] = end.value
    return list(zip(results, bounds, strict=True))


def _judged_by_control(results: list[ExperimentResult]) -> tuple[ExperimentResult, ...]:
    """Make every verdict unknown when the control leg did not hold."""
    control, *others = results
    if control.verdict is Verdict.HELD:
        return tuple(results)
    note = f"the control leg was {control.verdict}"
    return (
        control,
        *(replace(r, verdict=Verdict.UNKNOWN, violations=(), note=note) for r in others),
    )
