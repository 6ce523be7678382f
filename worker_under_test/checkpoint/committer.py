"""Committing a snapshot: gate, store, and the way back, in the one right order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.checkpoint.errors import StoreMissing
from worker_under_test.checkpoint.store import load_if_any

if TYPE_CHECKING:
    from worker_under_test.checkpoint.gate import SeqGate
    from worker_under_test.checkpoint.snapshot import Snapshot
    from worker_under_test.checkpoint.store import StoreCAS


class Committer:
    """Commits snapshots of any number of runs (COM-01).

    The store decides, also between processes; the gate saves it the writes that this process knows
    to be stale (COM-28).

    Args:
        gate: The gate of this process; None leaves every decision to the store, which is as safe
            and costs more round trips (COM-02).
        store: Where snapshots go; None makes every commit fail (COM-04).
    """

    def __init__(self, gate: SeqGate | None, store: StoreCAS | None) -> None:
        self._gate = gate
        self._store = store

    async def commit(self, snapshot: Snapshot) -> None:
        """Commit a snapshot; it has landed when this returns (COM-09).

        The order is fixed (COM-06): the gate accepts, the store saves, and only if that failed, in
        whatever way, the gate takes its number back (COM-12). A refusal by the gate takes nothing
        back, since nothing was accepted (COM-08).

        Args:
            snapshot: The snapshot. It is neither changed nor kept (COM-29).

        Raises:
            StoreMissing: There is no store; the gate was not asked (COM-05).
            StaleSeq: The gate or the store knows an equal or newer number. Load, compare, and
                commit again on top if the finished step is missing (COM-16 to COM-18).
            Exception: What the store raised, unchanged (COM-15). Unless it is `StaleSeq`, the
                snapshot may have landed all the same (STO-21).
        """
        if self._store is None:
            raise StoreMissing(f"commit of run {snapshot.run_id!r}, seq {snapshot.seq}")
        if self._gate is not None:
            self._gate.accept(snapshot)
        try:
            crash_point("snapshot.accept.after", run=snapshot.run_id, seq=snapshot.seq)
            await self._store.save_if_newer(snapshot)
        except BaseException as failure:
            crash_point("snapshot.release.before", run=snapshot.run_id, seq=snapshot.seq)
            self._take_back(snapshot, failure)
            raise
        crash_point("snapshot.commit.after", run=snapshot.run_id, seq=snapshot.seq)

    def _take_back(self, snapshot: Snapshot, failure: BaseException) -> None:
        # Nothing is awaited here: a cancelled or closed coroutine may not wait any more.
        if self._gate is None:
            return
        try:
            self._gate.release(snapshot.run_id, snapshot.seq)
        except Exception as error:  # noqa: BLE001 - the failed save is what the caller must see
            failure.add_note(f"and the gate could not take the number back: {error!r}")

    async def seed_from_store(self, run_id: str) -> None:
        """Tell the gate what is stored; call it once per run after a start (COM-20, COM-25).

        A run without a record is not an error (COM-21). Repeating is harmless (COM-23). Without a
        gate there is nothing to tell (COM-24).

        Args:
            run_id: The run.

        Raises:
            StoreMissing: There is no store.
            Exception: What the store raised, or `DamagedRecordError`: the gate is as it was, and
                the host must not go on (COM-22).
        """
        if self._store is None:
            raise StoreMissing(f"seeding of run {run_id!r}")
        if self._gate is None:
            return
        snapshot = await load_if_any(self._store, run_id)
        if snapshot is None:
            return
        crash_point("gate.seed.before", run=run_id, seq=snapshot.seq)
        self._gate.seed(run_id, snapshot.seq)

    def last(self, run_id: str) -> int:
        """Return the highest number that the gate accepted, 0 without a gate (COM-03, COM-19)."""
        return 0 if self._gate is None else self._gate.last(run_id)
