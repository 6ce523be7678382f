"""What every store refuses, and how it tells a repetition from a conflict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_under_test.checkpoint.errors import (
    ConflictingSnapshotError,
    InvalidSnapshotError,
    StaleSeq,
)
from worker_under_test.checkpoint.snapshot import Status

if TYPE_CHECKING:
    from worker_under_test.checkpoint.snapshot import Snapshot

_KNOWN_STATUSES = frozenset(Status)


def require_writable(snapshot: Snapshot) -> None:
    """Refuse a snapshot that must not be stored, before anything is written.

    Args:
        snapshot: The snapshot about to be saved.

    Raises:
        StaleSeq: Its number is 0, which is never a real commit (SNP-04, STO-11, AMB-8).
        InvalidSnapshotError: It has no run, which would mix up all runs that have none (STO-20);
            its state is unknown (SNP-06); or a text holds a lone surrogate, which UTF-8 cannot
            carry, so that it would not come back as it was (SNP-09).
    """
    if snapshot.seq == 0:
        raise StaleSeq(f"run {snapshot.run_id!r}: 0 offered, which is not a commit")
    if not snapshot.run_id:
        raise InvalidSnapshotError("a snapshot without a run cannot be stored")
    if snapshot.status not in _KNOWN_STATUSES:
        known = ", ".join(repr(str(status)) for status in Status)
        raise InvalidSnapshotError(f"unknown status {snapshot.status!r}; known are {known}")
    for text in (
        snapshot.run_id,
        *snapshot.done,
        *snapshot.fields.keys(),
        *snapshot.fields.values(),
    ):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidSnapshotError(f"not text that UTF-8 can carry: {text!r}") from error


def require_newer(stored: Snapshot | None, new: Snapshot) -> None:
    """Refuse a snapshot that is not newer than the stored one (STO-07 to STO-10).

    Args:
        stored: What is stored, or None if nothing is, which counts as number 0.
        new: The snapshot about to be saved.

    Raises:
        StaleSeq: The stored number is equal or higher.
    """
    if stored is not None and stored.seq >= new.seq:
        raise StaleSeq(f"run {new.run_id!r}: {new.seq} offered, {stored.seq} stored")


def is_repetition(stored: Snapshot | None, new: Snapshot) -> bool:
    """Tell whether an unconditional save has happened already (STO-02).

    Args:
        stored: What is stored, or None if nothing is.
        new: The snapshot about to be saved.

    Returns:
        True if the stored snapshot has the same number and says the same.

    Raises:
        ConflictingSnapshotError: It has the same number and says something else (STO-03).
    """
    if stored is None or stored.seq != new.seq:
        return False
    if not stored.same_facts(new):
        raise ConflictingSnapshotError(
            f"run {new.run_id!r}, seq {new.seq}: another snapshot is stored under this number"
        )
    return True
