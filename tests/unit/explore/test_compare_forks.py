"""Which experiments are run with an interpreter per incarnation, and what a difference means."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest
from harness_doubles import broken, hits, result, scenario

from harness.explore import compare_forks as compared
from harness.explore.compare_forks import compare_forks
from harness.explore.exploration import Exploration
from harness.model.events import ignore
from harness.model.result import Fired, Verdict
from harness.model.schedule import CONTROL, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harness.experiment.lane import Job
    from harness.explore.executor import Executor
    from harness.model.result import ExperimentResult
    from harness.model.schedule import Schedule

LABELS = [f"a.p{n}.before" for n in range(12)]
AT = parse("a.p0.before#1=kill")


class ToldExecutor:
    """Runs nothing, and says what a test wants it to say."""

    def __init__(self, answer: Callable[[Job, int], ExperimentResult]) -> None:
        self._answer = answer
        self.jobs: list[Job] = []

    def run(
        self, jobs: Sequence[Job], *, keep: bool = True
    ) -> Iterator[tuple[int, ExperimentResult]]:
        """Answer, the last job first."""
        assert not keep
        for index in reversed(range(len(jobs))):
            self.jobs.append(jobs[index])
            yield index, self._answer(jobs[index], len(self.jobs))


def _held(job: Job, _count: int) -> ExperimentResult:
    return _result(job.scenario, job.schedule)


def _result(name: str, schedule: Schedule) -> ExperimentResult:
    fired = tuple(Fired(moment, 1) for moment in schedule.moments)
    return replace(result(schedule, [hits(*LABELS), hits()], scenario=name), fired=fired)


def _through(name: str = "tried", tier: str = "smoke", labels: int = 12) -> Exploration:
    """Return the exploration of a scenario, which is through."""
    strike = tuple(LABELS[:labels])
    exploration = Exploration(scenario(name), tier, 0)
    while not exploration.finished:
        for schedule in exploration.wanted:
            found = _result(name, schedule)
            if schedule == CONTROL:
                found = replace(
                    found, incarnations=(replace(found.incarnations[0], hits=hits(*strike)),)
                )
            exploration.add(replace(found, incarnations=found.incarnations[:1]))
    return exploration


def _compare(
    explorations: list[Exploration],
    answer: Callable[[Job, int], ExperimentResult] = _held,
    tier: str = "smoke",
    seed: int = 0,
) -> ToldExecutor:
    executor = ToldExecutor(answer)
    compare_forks(explorations, cast("Executor", executor), ignore, tier=tier, seed=seed)
    return executor


def _looked_at(explorations: list[Exploration]) -> set[str]:
    return {each.scenario.name for each in explorations if each.sample.comparisons}


@pytest.mark.parametrize(
    ("tier", "labels", "most"),
    [("smoke", 12, 2), ("smoke", 3, 4), ("full", 12, 6), ("deep", 12, 11), ("full", 2, 3)],
)
def test_a_tier_compares_so_many(tier: str, labels: int, most: int) -> None:
    """The control leg and a few struck experiments; all of them where there are few."""
    exploration = _through(tier=tier, labels=labels)
    executor = _compare([exploration], tier=tier)
    assert len(exploration.sample.comparisons) == most
    assert exploration.sample.comparisons[0].forked.schedule == CONTROL
    assert all(job.fresh and not job.sharing for job in executor.jobs)
    assert exploration.sample.why_not == ""


def test_what_is_drawn_depends_on_the_seed_alone() -> None:
    """Two runs with one seed compare the same experiments, and several seeds others."""
    drawn = []
    for seed in (0, 0, 1, 2, 3):
        exploration = _through()
        _compare([exploration], seed=seed)
        drawn.append([str(c.forked.schedule) for c in exploration.sample.comparisons])
    assert drawn[0] == drawn[1]
    assert len(set(map(tuple, drawn))) > 1


def test_the_smallest_tier_looks_at_all_scenarios_under_several_seeds() -> None:
    """One run has no time for all; which were left out is said, and no seed leaves one out."""
    count = compared.SMOKE_SCENARIOS * 3 - 1
    looked_at: list[set[str]] = []
    for seed in (7, 8, 9):
        explorations = [_through(f"s{n}") for n in range(count)]
        _compare(explorations, seed=seed)
        looked_at.append(_looked_at(explorations))
        left_out = {each.sample.why_not for each in explorations if not each.sample.comparisons}
        assert left_out == {compared.OTHER_SEED}
    assert max(map(len, looked_at)) <= compared.SMOKE_SCENARIOS
    assert sum(map(len, looked_at)) == len(set.union(*looked_at)) == count


def test_larger_tiers_look_at_every_scenario() -> None:
    """Nothing is left out where there is time."""
    explorations = [_through(f"s{n}", "full") for n in range(compared.SMOKE_SCENARIOS * 3)]
    _compare(explorations, tier="full")
    assert len(_looked_at(explorations)) == len(explorations)


def test_one_schedule_is_not_compared() -> None:
    """Who asks for one schedule gets that one."""
    exploration = Exploration(scenario(), "smoke", 0, AT)
    for schedule in (CONTROL, AT):
        exploration.add(_result("tried", schedule))
    assert _compare([exploration]).jobs == []
    assert exploration.sample.why_not == compared.ONE_SCHEDULE


def test_a_verdict_that_needs_a_fork_is_inconclusive() -> None:
    """It held in forks, twice, and is broken twice with an interpreter per incarnation."""
    exploration = _through(labels=1)

    def answer(job: Job, _count: int) -> ExperimentResult:
        return broken(job.schedule, "first") if job.fresh and job.schedule == AT else _held(job, 0)

    executor = _compare([exploration], answer)
    assert [job.fresh for job in executor.jobs] == [True, True, False, True]
    (why,) = exploration.sample.inconclusive()
    assert why.startswith(
        "with an interpreter per incarnation, a.p0.before#1=kill is broken (first"
    )
    assert "and held in a fork" in why
    assert [row["agrees"] for row in exploration.sample.row["experiments"]] == [True, False]


@pytest.mark.parametrize("fresh", [False, True])
def test_a_verdict_that_does_not_come_again_is_told_as_such(fresh: bool) -> None:
    """Nothing is said of forks where the same run comes out differently by itself."""
    exploration = _through(labels=1)

    def answer(job: Job, count: int) -> ExperimentResult:
        first = count <= 2
        bad = first if fresh else True
        at_point = job.schedule != CONTROL
        return broken(job.schedule, "first") if at_point and bad else _held(job, 0)

    _compare([exploration], answer)
    (why,) = exploration.sample.inconclusive()
    how = "with an interpreter per incarnation" if fresh else "in a fork"
    assert why.startswith(f"run twice {how}, a.p0.before#1=kill is ")
    assert "Scenario.fresh" not in why


def test_messages_may_differ() -> None:
    """The same promise broken, and another of several equal things named, is the same verdict."""
    exploration = _through(labels=1)
    struck = exploration.results[1]
    exploration.add(broken(struck.schedule, "first"))

    def answer(job: Job, _count: int) -> ExperimentResult:
        other = broken(job.schedule, "first")
        violations = tuple(replace(v, message="another") for v in other.violations)
        return replace(other, violations=violations) if job.schedule == AT else _held(job, 0)

    _compare([exploration], answer)
    assert exploration.sample.comparisons[0].forked.verdict is Verdict.HELD
    assert [*exploration.sample.inconclusive()] == []
