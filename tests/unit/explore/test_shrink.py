"""Shrinking: what is found still breaks the promise, is a part of what was given, is minimal."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, cast

from harness_doubles import broken, result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.explore.shrink import RUNS, RUNS_EACH, Shrinker
from harness.model.result import Verdict
from harness.model.schedule import Schedule, parse
from harness.record.minimal import Minimal, minimal_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harness.experiment.lane import Job
    from harness.explore.executor import Executor
    from harness.model.result import ExperimentResult

Oracles = tuple[str, ...]
Lives = tuple[str, ...]

PROPERTY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
LIVES = st.lists(st.sampled_from("abcdefg"), min_size=2, max_size=7).map(tuple)


def schedule(incarnations: Lives) -> Schedule:
    """Return a schedule that strikes one incarnation after the other."""
    return parse(" / ".join(f"part.{life}.before=kill" for life in incarnations))


class Runner:
    """Stands for an executor: says which oracles a schedule breaks, and counts.

    Args:
        breaks: The oracles that find something, by the lives that are struck.
    """

    def __init__(self, breaks: Callable[[Lives], Oracles]) -> None:
        self.breaks = breaks
        self.ran: list[Schedule] = []
        self.confirmed: list[Schedule] = []
        self.flaky: set[Schedule] = set()

    def outcome(self, tried: Schedule) -> ExperimentResult:
        """Return what comes of a schedule."""
        incarnations = tuple(str(strike[0].moment).split(".")[1] for strike in tried.incarnations)
        oracles = self.breaks(incarnations)
        return broken(tried, *oracles) if oracles else result(tried, verdict=Verdict.HELD)

    def run(self, jobs: Sequence[Job], *, keep: bool) -> Iterator[tuple[int, ExperimentResult]]:
        """Run experiments as an executor does."""
        assert not keep, "what a shorter schedule leaves is not shown"
        for index, job in enumerate(jobs):
            (self.confirmed if job.confirm else self.ran).append(job.schedule)
            if job.confirm and job.schedule in self.flaky:
                yield index, result(job.schedule, verdict=Verdict.FLAKY)
            else:
                yield index, self.outcome(job.schedule)

    def shrink(self, *given_lives: Lives, left: int = RUNS) -> list[Minimal]:
        """Shrink failures in one run."""
        failures = [self.outcome(schedule(incarnations)) for incarnations in given_lives]
        shrinker = Shrinker(cast("Executor", self), left=left)
        found = shrinker.shrink_all(failures)
        return [found[failure.fingerprint] for failure in failures]


@st.composite
def runners(draw: st.DrawFn, incarnations: Lives) -> Runner:
    """Draw a worker that these lives break; what a part of them does follows no rule."""
    parts = {
        part: draw(st.sets(st.sampled_from(("first", "second"))))
        for size in range(1, len(incarnations))
        for part in sorted(set(combinations(incarnations, size)))
        if draw(st.integers(0, 3)) == 0
    }
    parts[incarnations] = draw(st.sets(st.sampled_from(("first", "second")), min_size=1))
    return Runner(lambda tried: tuple(sorted(parts.get(tried, set()))))


def _without_one(tried: Schedule) -> list[Schedule]:
    return [
        Schedule(tried.incarnations[:index] + tried.incarnations[index + 1 :])
        for index in range(len(tried.incarnations))
    ]


@PROPERTY
@given(st.data(), LIVES)
def test_what_is_found_breaks_the_same_promise_and_is_minimal(
    data: st.DataObject, incarnations: Lives
) -> None:
    """The minimal schedule is believed because everything shorter was tried."""
    runner = data.draw(runners(incarnations))
    failure = runner.outcome(schedule(incarnations))
    (found,) = runner.shrink(incarnations)
    now = runner.outcome(found.schedule)
    assert set(now.oracles) & set(failure.oracles)
    kept = iter(failure.schedule.incarnations)
    assert all(life in kept for life in found.schedule.incarnations), "not a part of what was given"
    assert len(runner.ran) == len(set(runner.ran)) <= RUNS_EACH
    if found.whole and len(found.schedule.incarnations) > 1:
        for shorter in _without_one(found.schedule):
            assert not set(runner.outcome(shorter).oracles) & set(failure.oracles)
    if not found.whole:
        assert len(runner.ran) == RUNS_EACH
    assert ("budget was used up" in found.how) == (not found.whole)


@PROPERTY
@given(st.data(), LIVES)
def test_what_is_found_has_been_confirmed(data: st.DataObject, incarnations: Lives) -> None:
    """A try is one run; a shorter schedule that breaks now and then is not the shortest failure."""
    runner = data.draw(runners(incarnations))
    tries = {schedule(tuple(part)) for n in range(1, 3) for part in combinations(incarnations, n)}
    runner.flaky = data.draw(st.sets(st.sampled_from(sorted(tries, key=str))))
    (found,) = runner.shrink(incarnations)
    if found.schedule != schedule(incarnations):
        assert found.schedule in runner.confirmed
        assert found.schedule not in runner.flaky
    assert len(runner.confirmed) == len(set(runner.confirmed))
    for step in found.tried:
        known_flaky = step.schedule in runner.flaky and step.schedule in runner.confirmed
        assert (step.verdict is Verdict.FLAKY) == known_flaky


@PROPERTY
@given(st.data(), LIVES)
def test_what_was_tried_is_told_as_it_was(data: st.DataObject, incarnations: Lives) -> None:
    """Each step that was taken is shorter than the one before, and each try is told."""
    runner = data.draw(runners(incarnations))
    (found,) = runner.shrink(incarnations)
    for step in found.tried:
        assert step.verdict is runner.outcome(step.schedule).verdict
    taken = [schedule(incarnations), *(step.schedule for step in found.tried if step.taken)]
    assert taken[-1] == found.schedule
    assert [len(each.incarnations) for each in taken] == [
        len(incarnations) - n for n in range(len(taken))
    ]
    row = minimal_row(found)
    assert row["schedule"] == str(found.schedule)
    assert [step["taken"] for step in row["steps"]] == [step.taken for step in found.tried]


@PROPERTY
@given(st.lists(LIVES, min_size=1, max_size=8, unique=True), st.integers(0, RUNS))
def test_run_has_one_budget_for_all_its_failures(many: list[Lives], left: int) -> None:
    """Shrinking is bounded for a run, and says where it stopped."""
    runner = Runner(lambda tried: ("first",) if len(tried) > 1 else ())
    found = runner.shrink(*many, left=left)
    assert len(runner.ran) <= left
    for minimal in found:
        if not minimal.whole:
            assert "a shorter one may exist" in minimal.how


def test_what_the_run_has_tried_is_not_run_again() -> None:
    """Results of the tier are used; only what it left out costs anything."""
    runner = Runner(lambda tried: ("first",) if "a" in tried else ())
    failures = [runner.outcome(schedule(tuple(text))) for text in ("ab", "a", "b")]
    found = Shrinker(cast("Executor", runner)).shrink_all(failures)
    assert runner.ran == []
    assert found[failures[0].fingerprint].schedule == schedule(("a",))
    assert list(found) == [failures[0].fingerprint], "one crash has nothing to leave out"


def test_another_promise_is_another_failure() -> None:
    """A shorter schedule that breaks something else is not a shorter way to this failure."""
    runner = Runner(lambda tried: ("first",) if len(tried) > 1 else ("second",))
    (found,) = runner.shrink(("a", "b"))
    assert found.schedule == schedule(("a", "b"))
    assert found.how == "2 shorter schedules tried, none broke the same promise"
