"""The gate of sequence numbers inside one process."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from worker_under_test.checkpoint.errors import StaleSeq
from worker_under_test.checkpoint.snapshot import require_seq

if TYPE_CHECKING:
    from worker_under_test.checkpoint.snapshot import Snapshot

MAX_RELEASABLE = 1024
"""How many accepted numbers of one run can still be released, counted from the highest."""


@dataclass(slots=True)
class _History:
    """What the gate remembers of one run.

    Attributes:
        floor: Highest number that no release may undo; 0 is none.
        accepted: Numbers accepted above the floor, ascending.
    """

    floor: int = 0
    accepted: deque[int] = field(default_factory=deque)

    @property
    def last(self) -> int:
        return self.accepted[-1] if self.accepted else self.floor


class SeqGate:
    """Refuse snapshots that are not newer than the newest one this process has seen, per run.

    It exists for the save that is slow: snapshot N+1 lands first, N arrives late and would put the
    old state back (GAT-27). *Accepted* does not mean *landed*: a save that fails must be followed
    by `release`, or the run is stuck (GAT-10, GAT-11); one that succeeded must not be, or a stale
    write passes (GAT-20). `Committer` keeps that order.

    A new gate knows nothing. After a restart it must be told what is stored with `seed`, or the
    late write of an earlier process passes (GAT-21, GAT-26).

    Every method is atomic and may be called from any thread (GAT-28). The gate keeps one small
    record per run for as long as it lives. It is never told that a save landed, so it bounds that
    record itself: a release reaches back over the last `MAX_RELEASABLE` accepted numbers.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, _History] = {}

    def accept(self, snapshot: Snapshot) -> None:
        """Let a snapshot pass and remember its number (GAT-02 to GAT-06).

        Args:
            snapshot: The snapshot about to be saved.

        Raises:
            StaleSeq: Its number is 0 or not above the highest accepted one; nothing is remembered.
        """
        with self._lock:
            history = self._runs.get(snapshot.run_id, _History())
            if snapshot.seq <= history.last:
                raise StaleSeq(
                    f"run {snapshot.run_id!r}: {snapshot.seq} offered, {history.last} accepted"
                )
            history.accepted.append(snapshot.seq)
            if len(history.accepted) > MAX_RELEASABLE:
                history.floor = history.accepted.popleft()
            self._runs[snapshot.run_id] = history

    def release(self, run_id: str, seq: int) -> bool:
        """Take back an accepted number whose save failed (GAT-12 to GAT-19).

        The value before that number's own `accept` is in force again, however many were accepted
        since the last seed, and never one below a seeded value (AMB-17).

        Args:
            run_id: The run.
            seq: The accepted number.

        Returns:
            True if it was the highest accepted number and is taken back; False if it was not, and
            then nothing has changed.
        """
        with self._lock:
            history = self._runs.get(run_id)
            if history is None or not history.accepted or history.accepted[-1] != seq:
                return False
            history.accepted.pop()
            if not history.last:
                del self._runs[run_id]
            return True

    def seed(self, run_id: str, seq: int) -> None:
        """Set the number that is stored already (GAT-21 to GAT-25).

        Repeating it is harmless, and it never lowers the highest number.

        Args:
            run_id: The run.
            seq: Number of the stored snapshot; 0 and less mean that there is none.

        Raises:
            InvalidSnapshotError: ``seq`` is not an integer, or above the highest number.
        """
        require_seq(max(seq, 0))
        if seq <= 0:
            return
        with self._lock:
            history = self._runs.setdefault(run_id, _History())
            history.floor = max(history.floor, seq)
            while history.accepted and history.accepted[0] <= history.floor:
                history.accepted.popleft()

    def last(self, run_id: str) -> int:
        """Return the highest accepted number of a run, 0 if there is none (GAT-07)."""
        with self._lock:
            history = self._runs.get(run_id)
            return history.last if history else 0
