"""Known-bad workers whose fault needs an order of things are caught whatever the seed draws."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from harness.explore.session import run_session
from harness.explore.session_request import SessionRequest
from harness.images.root import default_root
from harness.model.result import Verdict
from harness.model.schedule import CONTROL
from harness.scenario import HOLDS
from scenarios.capability_worker import capability_worker, warm_capabilities
from scenarios.known_bad.capacity_without_lock import CAPACITY_WITHOUT_LOCK
from scenarios.known_bad.drain_in_memory import DRAIN_IN_MEMORY
from scenarios.known_bad.late_answer_taken_as_result import LATE_ANSWER_TAKEN_AS_RESULT
from scenarios.reference_control import CAPACITY
from scenarios.reference_worker import warm_up, worker_with

if TYPE_CHECKING:
    from harness.scenario import Scenario

KNOWN_BAD = (DRAIN_IN_MEMORY, CAPACITY_WITHOUT_LOCK, LATE_ANSWER_TAKEN_AS_RESULT)


def right(scenario: Scenario) -> Scenario:
    """Return a known-bad worker's scenario with the reference worker in its place."""
    mended = replace(scenario, name=f"{scenario.name}-mended", pin=HOLDS)
    if scenario is LATE_ANSWER_TAKEN_AS_RESULT:
        return replace(mended, worker=capability_worker, warm=warm_capabilities)
    return replace(
        mended, worker=worker_with(None, CAPACITY), warm=partial(warm_up, capacity=CAPACITY)
    )


# Each draws an order in which some of these workers, left alone, do nothing wrong.
@pytest.mark.parametrize(
    "seed",
    [
        4,
        pytest.param(3, marks=pytest.mark.nightly),
        pytest.param(29, marks=pytest.mark.nightly),
    ],
)
def test_every_strike_shows_the_fault_and_the_right_worker_holds(seed: int) -> None:
    """A pin holds for every seed: what shows the fault is forced, and not drawn.

    `drain-in-memory` was caught under seed 0 and few others, `capacity-without-lock` not under 4,
    and `late-answer-taken-as-result` not under 3 and 29.
    """
    scenarios = (*KNOWN_BAD, *map(right, KNOWN_BAD))
    done = run_session(SessionRequest(scenarios, default_root(), seed=seed, jobs=2))
    assert done.fault is None
    outcomes = done.outcomes
    bad, mended = outcomes[: len(KNOWN_BAD)], outcomes[len(KNOWN_BAD) :]
    missed = [
        result.experiment_id
        for outcome in bad
        for result in outcome.results
        if result.schedule != CONTROL and outcome.scenario.pin.oracle not in result.oracles
    ]
    assert missed == []
    for outcome in outcomes:
        struck = {m.label for r in outcome.results if r.fired for m in r.schedule.moments}
        assert struck == set(outcome.scenario.strike)
    fallen = [r.experiment_id for o in mended for r in o.results if r.verdict is not Verdict.HELD]
    assert fallen == []
