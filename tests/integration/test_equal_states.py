"""What an experiment comes to in a tier, where equal states are shared, and alone."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import pytest
from drawn_worker import SEEN_BY, WRITES, drawn_scenario
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.experiment.lane import Job
from harness.experiment.sharing import Sharing
from harness.explore.executor import Executor
from harness.images.root import default_root
from harness.model.result import Verdict
from harness.model.schedule import CONTROL, Moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.result import ExperimentResult
    from harness.model.schedule import Schedule
    from harness.scenario import Scenario

WORKERS = int(os.environ.get("CRASH_HARNESS_DRAWN_WORKERS", "25"))
"""How many workers are drawn; each takes about eighteen experiments."""

numbers = count()


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    """Give one lane, so that everything that can be shared is shared."""
    with Executor(1, default_root()) as one:
        yield one


def run(
    executor: Executor, scenario: Scenario, schedules: list[Schedule], sharing: Sharing
) -> list[ExperimentResult]:
    """Run schedules, and return their results in order."""
    jobs = [Job(scenario.name, schedule, 0, sharing=sharing) for schedule in schedules]
    return [result for _, result in sorted(executor.run(jobs), key=lambda pair: pair[0])]


def told(result: ExperimentResult) -> str:
    """Return what a record says of an experiment."""
    lines = [f"{result.schedule}: {result.verdict} {result.note}"]
    lines += [f"{violation.oracle}: {violation.message}" for violation in result.violations]
    for trace in result.incarnations:
        lines.append(f"{trace.number} {trace.death}: {[hit.label for hit in trace.hits]}")
    return "\n".join(lines)


@settings(
    max_examples=WORKERS,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    before=st.lists(st.sampled_from(sorted(WRITES)), max_size=3),
    seen=st.sampled_from([(write, by) for write, looks in SEEN_BY.items() for by in looks]),
    after=st.lists(st.sampled_from(sorted(WRITES)), max_size=2),
    odd=st.integers(0, 1),
)
def test_a_tier_says_what_each_experiment_says_alone(
    executor: Executor, before: list[str], seen: tuple[str, str], after: list[str], odd: int
) -> None:
    """Equality was blinder than a restart: what held was taken for what does not hold."""
    write, stumbles_over = seen
    scenario = drawn_scenario(next(numbers), ("file", *before, write, *after), stumbles_over, odd)
    executor.prepare([scenario])
    (control,) = run(executor, scenario, [CONTROL], Sharing.ALL)
    hits = control.incarnations[0].hits
    moments = [Moment(hit.label, hit.hits[""]) for hit in hits]
    # Last first: then what is remembered has the most of what the others may lack.
    schedules = [CONTROL.then(moment) for moment in reversed(moments)]
    schedules += [schedule.then(moments[0]) for schedule in schedules[:2]]
    shared = run(executor, scenario, schedules, Sharing.ALL)
    alone = run(executor, scenario, schedules, Sharing.NOTHING)
    for one, other in zip(shared, alone, strict=True):
        assert told(one) == told(other)


def test_the_drawn_workers_can_tell_states_apart(executor: Executor) -> None:
    """Otherwise the test above would hold whatever is shared."""
    scenario = drawn_scenario(next(numbers), ("file", "mode", "stamp"), "time", 0)
    executor.prepare([scenario])
    other = replace(scenario, name=f"drawn-{next(numbers)}")
    executor.prepare([other])
    schedules = [CONTROL.then(Moment("state.write.after", n)) for n in (1, 2, 3)]
    verdicts = {result.verdict for result in run(executor, scenario, schedules, Sharing.NOTHING)}
    assert verdicts == {Verdict.HELD, Verdict.BROKEN}
