"""The planner of the oracles against the worker's: written apart, they must agree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.oracles.mailbox.worker_state import SnapshotRow, StepRow
from harness.oracles.plans import reference_planner as naive_plan
from worker_under_test.checkpoint import Snapshot, StepDef, build_plan

IDS = ("", "a", "b", "c", "d", "e", "f")
STEPS = st.builds(
    StepRow,
    step_id=st.sampled_from(IDS),
    depends_on=st.lists(st.sampled_from((*IDS[1:], "ghost")), max_size=3).map(tuple),
    isolated=st.booleans(),
)
SNAPSHOTS = st.none() | st.builds(
    SnapshotRow,
    run_id=st.just("r"),
    seq=st.just(1),
    status=st.sampled_from(("running", "completed", "failed", "")),
    done=st.lists(st.sampled_from((*IDS[1:], "ghost")), max_size=8).map(tuple),
)


@pytest.mark.requirement("PLN-04..PLN-11", "PLN-17", "PLN-28")
@settings(max_examples=2000, deadline=None)
@given(st.lists(STEPS, max_size=7), SNAPSHOTS)
def test_the_two_planners_agree(steps: list[StepRow], snapshot: SnapshotRow | None) -> None:
    """They agree on skip, run, blocked, and on what can never be trusted."""
    graph = [StepDef(s.step_id, depends_on=s.depends_on, isolated=s.isolated) for s in steps]
    stored = None if snapshot is None else Snapshot("r", 1, snapshot.status, snapshot.done)
    theirs = build_plan(graph, stored)
    ours = naive_plan.plan(steps, snapshot)
    assert ours.skip == set(theirs.skip)
    assert ours.run == set(theirs.run)
    assert ours.blocked == theirs.blocked
    everything = Snapshot("r", 2, "running", [s.step_id for s in steps if s.step_id])
    assert ours.hopeless == set(build_plan(graph, everything).run)
