"""How far a run is: one snapshot per finished step, numbers and completions taken together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.checkpoint import (
    Committer,
    DamagedRecordError,
    SeqGate,
    Snapshot,
    StaleSeq,
    Status,
    load_if_any,
)
from worker_under_test.domain.errors import LocalFailureError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from worker_under_test.ports.step_store import StepResult, StepStore

TRIES = 3
"""How often a snapshot is committed before the store counts as failed."""


REASON = "reason"
"""Field of a terminal snapshot that says why the run failed."""


class SupersededError(Exception):
    """Another process has ended the run; nothing more is to be done here."""


class _WithResult:
    """A `StoreCAS` that saves the result of one step with its snapshot (ORC-09)."""

    def __init__(self, steps: StepStore, result: StepResult | None = None) -> None:
        self._steps = steps
        self._result = result

    async def save_if_newer(self, snapshot: Snapshot) -> None:
        await self._steps.save_step(snapshot, self._result)
        crash_point("steps.save.after", run=snapshot.run_id, seq=snapshot.seq)

    async def load(self, run_id: str) -> Snapshot:
        return await self._steps.load(run_id)


class RunProgress:
    """The stored progress of one run.

    Args:
        run_id: The run, named by its command: another process names it the same (SNP-02).
        gate: The gate of this process.
        steps: Where snapshots and results are kept.
        fields: The host's own facts, in every snapshot.
    """

    def __init__(
        self, run_id: str, gate: SeqGate, steps: StepStore, fields: Mapping[str, str]
    ) -> None:
        self._run_id = run_id
        self._gate = gate
        self._steps = steps
        self._fields = fields
        self._seq = 0
        self._done: tuple[str, ...] = ()
        # Held from taking number and completions until they have landed (ORC-05, SNP-16): two
        # steps that finish together never start from the same base.
        self._recording = asyncio.Lock()

    async def load(self) -> Snapshot | None:
        """Seed the gate, then load (ORC-04).

        Raises:
            DamagedRecordError: What the run has done is not known.
            LocalFailureError: The store failed; this does not say that the run never ran (ERR-05).
        """
        store = _WithResult(self._steps)
        try:
            await Committer(self._gate, store).seed_from_store(self._run_id)
            return await load_if_any(store, self._run_id)
        except DamagedRecordError:
            raise
        except Exception as error:
            raise LocalFailureError(f"progress of run {self._run_id!r}") from error

    def begin(self, base: Sequence[str], snapshot: Snapshot | None) -> None:
        """Start from what is trusted.

        Args:
            base: Completions that every further snapshot contains (ORC-11).
            snapshot: What was loaded, or None.
        """
        self._done = tuple(base)
        self._seq = 0 if snapshot is None else snapshot.seq

    async def record(self, result: StepResult) -> None:
        """Record that a step is finished; it counts as done when this returns (ORC-06).

        Raises:
            SupersededError: Another process has ended the run.
            LocalFailureError: The store failed.
        """
        async with self._recording:
            await self._commit(Status.RUNNING, result)

    async def end(self, status: Status, reason: str = "") -> None:
        """Record that the run has ended (ORC-07).

        Args:
            status: How.
            reason: Why it failed, kept in the snapshot.

        Raises:
            SupersededError: Another process has ended the run.
            LocalFailureError: The store failed.
        """
        async with self._recording:
            if reason:
                self._fields = {**self._fields, REASON: reason}
            await self._commit(status, None)

    async def _commit(self, status: Status, result: StepResult | None) -> None:
        committer = Committer(self._gate, _WithResult(self._steps, result))
        failure: Exception | None = None
        for _ in range(TRIES):
            done = (*self._done, result.step_id) if result else self._done
            snapshot = Snapshot(
                self._run_id, self._seq + 1, status, tuple(dict.fromkeys(done)), self._fields
            )
            try:
                await committer.commit(snapshot)
            except StaleSeq as error:
                failure = error
            except Exception as error:  # noqa: BLE001 - whatever the store raised, it may have landed
                failure = error
            else:
                self._take_over(snapshot)
                return
            # Newer, or failed: either way what is stored decides (COM-16 to COM-18).
            stored = await self.load()
            if stored is not None and self._settles(stored, snapshot):
                return
        raise LocalFailureError(f"commit of run {self._run_id!r}") from failure

    def _settles(self, stored: Snapshot, snapshot: Snapshot) -> bool:
        """Go on from what is stored; tell whether it makes the commit needless."""
        if stored.seq < snapshot.seq:
            return False
        if stored.same_facts(snapshot):  # It had landed, and an error was reported (COM-17).
            self._take_over(stored)
            return True
        if stored.is_terminal:
            raise SupersededError(f"run {self._run_id!r} was ended as {stored.status!r}")
        # What was done here stays in: a completion is never dropped by merging (COM-18).
        self._seq = stored.seq
        self._done = tuple(dict.fromkeys((*stored.done, *self._done)))
        return False

    def _take_over(self, snapshot: Snapshot) -> None:
        self._seq, self._done = snapshot.seq, tuple(snapshot.done)
