"""Shrinking: fewer crashes that break the same promise, within a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from harness_doubles import broken, result

from harness.explore import shrink
from harness.explore.shrink import Shrinker, Tried
from harness.result import ExperimentResult, Verdict
from harness.schedule import Schedule, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harness.explore.executor import Executor
    from harness.lane import Job

A, B, C = (f"order.{name}.after#1=kill" for name in ("charge", "finish", "report"))


def crashes(*strikes: str) -> Schedule:
    """Return a schedule with a crash in each of these lives."""
    return parse(" / ".join(strikes))


class ToldExecutor:
    """Answers as it is told, in place of processes, and remembers what was run."""

    def __init__(self, answer: Callable[[Schedule], ExperimentResult]) -> None:
        self._answer = answer
        self.ran: list[Schedule] = []

    def run(self, jobs: Sequence[Job], *, keep: bool) -> Iterator[tuple[int, ExperimentResult]]:
        """Answer the one job."""
        (job,) = jobs
        assert not keep, "what a shorter schedule leaves is not a failure of the run"
        self.ran.append(job.schedule)
        yield 0, self._answer(job.schedule)


def shrinker(executor: ToldExecutor) -> Shrinker:
    """Return a shrinker that runs experiments there."""
    return Shrinker(cast("Executor", executor))


def test_what_is_not_needed_is_left_out() -> None:
    """Issue 6: one incarnation after the other, and again from the beginning after a success."""
    executor = ToldExecutor(
        lambda schedule: broken(schedule, "first") if B in str(schedule) else result(schedule)
    )
    found = broken(crashes(A, B, C), "first")
    minimal = shrinker(executor).shrink_all([found])[found.fingerprint]
    assert minimal.schedule == crashes(B)
    assert minimal.tried == (
        Tried(crashes(B, C), Verdict.BROKEN, taken=True),
        Tried(crashes(C), Verdict.HELD, taken=False),
        Tried(crashes(B), Verdict.BROKEN, taken=True),
    )
    assert minimal.how == "3 shorter schedules tried, 2 broke the same promise"


def test_another_promise_is_another_failure() -> None:
    """Issue 6: a shorter schedule counts when one of the same oracles caught it."""
    executor = ToldExecutor(lambda schedule: broken(schedule, "second"))
    found = broken(crashes(A, B), "first")
    minimal = shrinker(executor).shrink_all([found])[found.fingerprint]
    assert minimal.schedule == crashes(A, B)
    assert minimal.how == "2 shorter schedules tried, none broke the same promise"


def test_what_the_run_knows_is_not_run_again() -> None:
    """Issue 6: the results of the run, and those of an earlier shrinking, are used."""
    executor = ToldExecutor(lambda schedule: broken(schedule, "first"))
    run = [
        broken(crashes(A), "first"),
        result(crashes(B)),
        broken(crashes(A, B), "first"),
        broken(crashes(A, C), "first"),
        broken(crashes(B, C), "first"),
    ]
    minimal = shrinker(executor).shrink_all(run)
    assert [minimal[each.fingerprint].schedule for each in run[2:]] == [
        crashes(A),
        crashes(C),
        crashes(C),
    ]
    assert executor.ran == [crashes(C)]


def test_only_broken_schedules_of_several_lives_are_shrunk() -> None:
    """Issue 6: one crash cannot be fewer, and what did not break has nothing to keep."""
    executor = ToldExecutor(result)
    several = crashes(A, B)
    given = [broken(crashes(A), "first"), result(several), result(several, verdict=Verdict.HUNG)]
    assert shrinker(executor).shrink_all(given) == {}
    assert executor.ran == []


@pytest.mark.parametrize(("budget", "limit"), [("RUNS_EACH", 1), ("left", 1)])
def test_a_budget_that_is_used_up_is_said(
    monkeypatch: pytest.MonkeyPatch, budget: str, limit: int
) -> None:
    """Rule 11: for a failure and for a run; what was found until then counts."""
    executor = ToldExecutor(
        lambda schedule: broken(schedule, "first") if A in str(schedule) else result(schedule)
    )
    found = broken(crashes(A, B, C), "first")
    several = shrinker(executor)
    if budget == "left":
        several.left = limit
    else:
        monkeypatch.setattr(shrink, budget, limit)
    minimal = several.shrink_all([found])[found.fingerprint]
    assert (minimal.schedule, minimal.whole, len(executor.ran)) == (crashes(A, B, C), False, limit)
    assert minimal.how.endswith("; the budget was used up, so a shorter one may exist")
