"""The matrix: the plans of several scenarios, run together to their ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.experiment.lane import Job
from harness.model.events import ExperimentFinished, Planned, ScenarioFinished, ScenarioStarted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.explore.experiment_runner import ExperimentRunner
    from harness.explore.exploration import Exploration
    from harness.model.events import EventHandler


def run_matrix(
    explorations: Sequence[Exploration],
    executor: ExperimentRunner,
    emit: EventHandler,
    *,
    seed: int = 0,
) -> None:
    """Run the rounds of all plans in step, so that every lane has something to do.

    Args:
        explorations: What to run; each result is added to its own as it comes in. The scenarios
            have been prepared.
        executor: Runs the experiments.
        emit: Is told what happens.
        seed: Seed of every experiment.

    Raises:
        HarnessError: The harness failed, or was asked to stop. Results that came in before are
            kept in the explorations.
    """
    for exploration in explorations:
        emit(ScenarioStarted(exploration.scenario.name))
    open_ones = [exploration for exploration in explorations if not exploration.finished]
    while open_ones:
        jobs = [(each, schedule) for each in open_ones for schedule in each.wanted]
        emit(Planned(len(jobs)))
        asked = [Job(e.scenario.name, schedule, seed, digests=e.digests) for e, schedule in jobs]
        for index, result in executor.run(asked):
            jobs[index][0].add(result)
            emit(ExperimentFinished(result))
        for exploration in open_ones:
            if exploration.finished:
                done = len(exploration.results)
                emit(ScenarioFinished(exploration.scenario.name, done))
        open_ones = [exploration for exploration in open_ones if not exploration.finished]
