"""The gate against a model that is written differently, in random histories."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from worker_under_test.checkpoint import SeqGate, Snapshot, StaleSeq

RUNS = ("r1", "r2")
runs = st.sampled_from(RUNS)
numbers = st.integers(0, 9)


class GateModel:
    """One run by the letter of the requirements: each accept notes the value before it."""

    def __init__(self) -> None:
        self.last = 0
        self.seeded = 0
        self.before: dict[int, int] = {}

    def accept(self, seq: int) -> bool:
        """A number that is strictly greater passes."""
        if seq <= self.last:
            return False
        self.before[seq] = self.last
        self.last = seq
        return True

    def release(self, seq: int) -> bool:
        """Only the highest number is released, to the value before it, not below a seed."""
        if seq == 0 or seq != self.last or seq <= self.seeded:
            return False
        self.last = max(self.before.pop(seq), self.seeded)
        return True

    def seed(self, seq: int) -> None:
        """A seed raises the number and never lowers it."""
        self.seeded = max(self.seeded, seq)
        self.last = max(self.last, seq)


class GateMachine(RuleBasedStateMachine):
    """Drives gate and models with the same commands."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = SeqGate()
        self.models = {run_id: GateModel() for run_id in RUNS}

    @rule(run_id=runs, seq=numbers)
    def accept(self, run_id: str, seq: int) -> None:
        """Both pass or both refuse."""
        try:
            self.gate.accept(Snapshot(run_id, seq, "running"))
        except StaleSeq:
            passed = False
        else:
            passed = True
        assert passed == self.models[run_id].accept(seq)

    @rule(run_id=runs, seq=numbers)
    def release(self, run_id: str, seq: int) -> None:
        """Both take back or neither."""
        assert self.gate.release(run_id, seq) == self.models[run_id].release(seq)

    @rule(run_id=runs)
    def release_the_last(self, run_id: str) -> None:
        """As `release`, of the only number for which it can be true."""
        self.release(run_id, self.models[run_id].last)

    @rule(run_id=runs, seq=numbers)
    def seed(self, run_id: str, seq: int) -> None:
        """Both are told the same."""
        self.gate.seed(run_id, seq)
        self.models[run_id].seed(seq)

    @invariant()
    def same_last(self) -> None:
        """Each run has the same highest number in both."""
        for run_id, model in self.models.items():
            assert self.gate.last(run_id) == model.last


@pytest.mark.requirement("GAT-02..GAT-08", "GAT-12..GAT-25", "GAT-28")
class TestGateMachine(GateMachine.TestCase):  # type: ignore[misc, valid-type]
    """The gate follows its model in every history."""

    settings = settings(
        max_examples=200, stateful_step_count=30, deadline=None, derandomize=True, database=None
    )
