"""The seam to durable storage: two protocols, and the one way to read them safely."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from worker_under_test.checkpoint.errors import DamagedRecordError, NotFound

if TYPE_CHECKING:
    from worker_under_test.checkpoint.snapshot import Snapshot


class _Loads(Protocol):
    async def load(self, run_id: str) -> Snapshot:
        """Return the stored snapshot of a run, as a copy (SNP-13).

        Args:
            run_id: The run.

        Raises:
            NotFound: There is none. A zero snapshot is never returned instead (STO-04).
            DamagedRecordError: There is one and it cannot be trusted (STO-22).
        """
        ...


class Store(_Loads, Protocol):
    """Storage that saves what it is given (STO-01).

    It keeps one record per run and is safe for concurrent use (STO-06). It does **not** order
    writes: a late save of an older snapshot replaces a newer one (STO-16).
    """

    async def save(self, snapshot: Snapshot) -> None:
        """Save a snapshot; it has landed when this returns (STO-18).

        Saving the same run and number again changes nothing (STO-02).

        Args:
            snapshot: The snapshot; a copy is kept (SNP-12).

        Raises:
            StaleSeq: Its number is 0, which is never a real commit (SNP-04).
            ConflictingSnapshotError: Other content is stored under this number; it is kept.
            InvalidSnapshotError: It cannot be stored (SNP-06).
        """
        ...


class StoreCAS(_Loads, Protocol):
    """Storage that compares and saves in one step, across processes (STO-13, STO-15).

    The name is the Go package's: compare-and-set on the sequence number.
    """

    async def save_if_newer(self, snapshot: Snapshot) -> None:
        """Save a snapshot if the stored number is strictly smaller (STO-07 to STO-12).

        An error other than the ones below leaves open whether it landed; the caller loads and
        compares (STO-21).

        Args:
            snapshot: The snapshot; a copy is kept (SNP-12).

        Raises:
            StaleSeq: An equal or higher number is stored, or the number is 0; nothing is written.
            InvalidSnapshotError: It cannot be stored (SNP-06).
        """
        ...


async def load_if_any(store: Store | StoreCAS, run_id: str) -> Snapshot | None:
    """Load a snapshot, or learn for certain that there is none.

    Only `NotFound` itself means "never ran". Every other failure passes on, one that has a
    `NotFound` as its cause included: better an error than a run from the start (ERR-05, ORC-03).

    Args:
        store: Where to look.
        run_id: The run.

    Returns:
        The snapshot, or None if the run has none.

    Raises:
        DamagedRecordError: The store answered with a zero snapshot or another run's (STO-05).
    """
    try:
        snapshot = await store.load(run_id)
    except NotFound:
        return None
    if snapshot.seq == 0 or snapshot.run_id != run_id:
        raise DamagedRecordError(
            f"the store was asked for run {run_id!r} and returned run {snapshot.run_id!r} "
            f"with seq {snapshot.seq}"
        )
    return snapshot
