"""Committer, gate and store in random histories with failures, restarts and another process."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from checkpoint_media import KINDS, BothStores, Medium
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from worker_under_test.checkpoint import (
    Committer,
    NotFound,
    SeqGate,
    Snapshot,
    StaleSeq,
    Status,
)

RUNS = ("r1", "r2")
FAULTS = (None, None, "before", "after", "cancel before", "cancel after")
runs = st.sampled_from(RUNS)
steps = st.lists(st.sampled_from("abc"), max_size=3)


class FaultyStore:
    """Fails before the write, or after it, as it is told for the next save."""

    def __init__(self, inner: BothStores) -> None:
        self._inner = inner
        self.fault: str | None = None

    async def save_if_newer(self, snapshot: Snapshot) -> None:
        """Save or fail, or both."""
        if self.fault is not None and "before" in self.fault:
            self._raise()
        await self._inner.save_if_newer(snapshot)
        if self.fault is not None:
            self._raise()

    def _raise(self) -> None:
        assert self.fault is not None
        raise asyncio.CancelledError if "cancel" in self.fault else OSError(self.fault)

    async def load(self, run_id: str) -> Snapshot:
        """Load."""
        return await self._inner.load(run_id)


class StoreMachine(RuleBasedStateMachine):
    """Two runs, this process, and another one that saves to the same store.

    The model: what is stored, and per run the highest number that this process may not offer any
    more. The histories are sequential, so a failed commit puts back exactly what was there before.
    """

    kind: str

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._medium = Medium(self.kind, Path(self._folder.name))
        self._runner = asyncio.Runner()
        self._opened = self._medium.open()
        self._store = self._runner.run(self._opened.__aenter__())
        self._faulty = FaultyStore(self._store)
        self._gated = True
        self._committer = Committer(SeqGate(), self._faulty)
        self._stored: dict[str, Snapshot] = {}
        self._last = dict.fromkeys(RUNS, 0)

    def teardown(self) -> None:
        """Close everything."""
        self._runner.run(self._opened.__aexit__(None, None, None))
        self._runner.close()
        self._folder.cleanup()

    def _stored_seq(self, run_id: str) -> int:
        return self._stored[run_id].seq if run_id in self._stored else 0

    @rule(
        run_id=runs,
        ahead=st.integers(-2, 3),
        done=steps,
        status=st.sampled_from(Status),
        fault=st.sampled_from(FAULTS),
    )
    def commit(
        self, run_id: str, ahead: int, done: list[str], status: Status, fault: str | None
    ) -> None:
        """Commit a number around the stored one, under a fault."""
        seq = max(self._stored_seq(run_id) + ahead, 0)
        snapshot = Snapshot(run_id, seq, status, done)
        offered = not self._gated or seq > self._last[run_id]
        newer = seq > self._stored_seq(run_id)
        self._faulty.fault = fault
        try:
            self._runner.run(self._catching(snapshot))
        except StaleSeq:
            assert not offered or (not newer and not (fault and "before" in fault))
        except OSError:
            assert offered
            assert fault
            assert newer or "before" in fault
        else:
            assert offered
            assert newer
            assert fault is None
            self._last[run_id] = seq if self._gated else 0
        if offered and newer and not (fault and "before" in fault):
            self._stored[run_id] = snapshot

    async def _catching(self, snapshot: Snapshot) -> None:
        """Commit; a cancellation would end the runner, so it is told apart by its own error."""
        try:
            await self._committer.commit(snapshot)
        except asyncio.CancelledError as error:
            raise OSError("cancelled") from error

    @rule(run_id=runs, ahead=st.integers(-1, 2), done=steps)
    def another_process_saves(self, run_id: str, ahead: int, done: list[str]) -> None:
        """Save past this process's committer and gate."""
        snapshot = Snapshot(run_id, max(self._stored_seq(run_id) + ahead, 0), "running", done)
        if snapshot.seq > self._stored_seq(run_id):
            self._runner.run(self._store.save_if_newer(snapshot))
            self._stored[run_id] = snapshot
        else:
            with pytest.raises(StaleSeq):
                self._runner.run(self._store.save_if_newer(snapshot))

    @rule(run_id=runs)
    def seed(self, run_id: str) -> None:
        """Tell the gate what is stored."""
        self._runner.run(self._committer.seed_from_store(run_id))
        if self._gated:
            self._last[run_id] = max(self._last[run_id], self._stored_seq(run_id))

    @rule(gate=st.sampled_from(["seeded", "empty", "none"]))
    def restart(self, gate: str) -> None:
        """Forget what was in memory, and reopen the store."""
        self._runner.run(self._opened.__aexit__(None, None, None))
        self._opened = self._medium.open()
        self._store = self._runner.run(self._opened.__aenter__())
        self._faulty = FaultyStore(self._store)
        self._gated = gate != "none"
        self._committer = Committer(SeqGate() if self._gated else None, self._faulty)
        self._last = dict.fromkeys(RUNS, 0)
        if gate == "seeded":
            for run_id in RUNS:
                self.seed(run_id)

    @invariant()
    def store_and_gate_follow_the_model(self) -> None:
        """What is stored is the last that landed, and the gate knows its own highest."""
        for run_id in RUNS:
            try:
                found = self._runner.run(self._store.load(run_id))
            except NotFound:
                found = None
            assert found == self._stored.get(run_id)
            assert self._committer.last(run_id) == self._last[run_id]


@pytest.mark.requirement("SNP-03", "STO-07", "STO-08", "STO-15", "STO-17", "STO-21", "INV-7")
@pytest.mark.requirement("COM-02", "COM-06..COM-11", "COM-14", "COM-23")
@pytest.mark.parametrize("kind", KINDS)
def test_random_histories(kind: str) -> None:
    """The stored number never goes down, whatever happens on the way.

    Through failures, cancellations, restarts and another process, a commit that returned is what is
    stored, and a failed one can be retried.
    """
    machine = type("Machine", (StoreMachine,), {"kind": kind})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=100 if kind == "memory" else 25,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            database=None,
        ),
    )
