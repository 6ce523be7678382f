"""A sample of every scenario's experiments, run with an interpreter per incarnation and compared.

What is drawn depends on the seed and on results alone. An interpreter costs what the worker's
imports cost, half a second for a large one, so the smallest tier looks at a few scenarios in each
run; as many seeds as it takes look at all.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from harness.experiment.lane import Job
from harness.experiment.sharing import Sharing
from harness.model.events import ComparingStarted, ExperimentCompared
from harness.model.result import Verdict
from harness.model.schedule import CONTROL
from harness.record.fork_sample import Comparison, ForkSample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.explore.experiment_runner import ExperimentRunner
    from harness.explore.exploration import Exploration
    from harness.model.events import EventHandler
    from harness.model.result import ExperimentResult

STRUCK = {"smoke": 1, "full": 5, "deep": 10}
"""By tier: how many struck experiments of a scenario are compared, beside the control leg."""

ALL_OF = 3
"""Of a scenario with no more struck experiments than these, all are compared."""

SMOKE_SCENARIOS = 4
"""How many scenarios the tier `smoke` looks at in one run."""

OWN = "each of its incarnations is an interpreter of its own"
ONE_SCHEDULE = "one schedule was run, not a tier"
OTHER_SEED = "a run with another seed looks at it"


def compare_forks(
    explorations: Sequence[Exploration],
    executor: ExperimentRunner,
    emit: EventHandler,
    *,
    tier: str,
    seed: int,
) -> None:
    """Run the samples of explorations that are through, and give each what came of its own.

    Args:
        explorations: All scenarios of the run.
        executor: Runs the experiments; the scenarios have been prepared.
        emit: Is told of each experiment.
        tier: Name of the tier.
        seed: Seed of every experiment.

    Raises:
        HarnessError: The harness failed, or was asked to stop.
    """
    wanted = [each for each in explorations if _why_not(each) == ""]
    looked_at = _drawn_scenarios(wanted, seed) if tier == "smoke" else wanted
    for exploration in explorations:
        why_not = _why_not(exploration) or ("" if exploration in looked_at else OTHER_SEED)
        if why_not:
            exploration.sample = ForkSample(why_not=why_not)
    chosen = [
        (exploration, result)
        for exploration in looked_at
        for result in _drawn_results(exploration, seed)
    ]
    if not chosen:
        return
    emit(ComparingStarted(len(chosen)))
    forked = [result for _, result in chosen]
    fresh = _run(forked, executor, emit, fresh=True)
    differ = [n for n, result in enumerate(forked) if not Comparison(result, fresh[n]).agrees]
    again = [forked[n] for n in differ]
    forked_again = dict(zip(differ, _run(again, executor, emit, fresh=False), strict=True))
    fresh_again = dict(zip(differ, _run(again, executor, emit, fresh=True), strict=True))
    for exploration in looked_at:
        exploration.sample = ForkSample(
            tuple(
                Comparison(result, fresh[n], forked_again.get(n), fresh_again.get(n))
                for n, (owner, result) in enumerate(chosen)
                if owner is exploration
            ),
            why_not="",
        )


def _why_not(exploration: Exploration) -> str:
    if exploration.scenario.fresh:
        return OWN
    return "" if exploration.of_a_tier else ONE_SCHEDULE


def _drawn_scenarios(explorations: Sequence[Exploration], seed: int) -> list[Exploration]:
    """Choose an equal part of the scenarios; runs of that many seeds in a row choose all."""
    parts = max(1, -(-len(explorations) // SMOKE_SCENARIOS))
    return [each for n, each in enumerate(explorations) if n % parts == seed % parts]


def _drawn_results(exploration: Exploration, seed: int) -> list[ExperimentResult]:
    control, *others = exploration.results
    struck = [result for result in others if result.fired and result.schedule != CONTROL]
    count = STRUCK[exploration.tier]
    if len(struck) > max(count, ALL_OF):
        draw = random.Random(f"compare-forks/{seed}/{exploration.scenario.name}")
        struck = [struck[n] for n in sorted(draw.sample(range(len(struck)), count))]
    # One that comes out differently in two forks can be compared with nothing.
    return [result for result in (control, *struck) if result.verdict is not Verdict.FLAKY]


def _run(
    results: Sequence[ExperimentResult],
    executor: ExperimentRunner,
    emit: EventHandler,
    *,
    fresh: bool,
) -> list[ExperimentResult]:
    jobs = [
        Job(
            result.scenario,
            result.schedule,
            result.seed,
            sharing=Sharing.NOTHING,
            fresh=fresh,
            confirm=False,  # what differs is run again here
        )
        for result in results
    ]
    found: dict[int, ExperimentResult] = {}
    for index, result in executor.run(jobs, keep=False):
        found[index] = result
        emit(ExperimentCompared(result))
    return [found[index] for index in range(len(jobs))]
