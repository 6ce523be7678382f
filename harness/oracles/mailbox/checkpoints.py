"""Checkpoints: the place to go on from never moves back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.model.oracle import Finding, broken_if

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.oracle import Evidence
    from harness.oracles.mailbox.worker_state import StateReader


@dataclass(frozen=True, slots=True)
class CheckpointsAdvance:
    """The stored sequence number of an attempt never goes down (INV-7).

    Attributes:
        read_books: Reader of the worker's books.
    """

    read_books: StateReader
    name: str = "checkpoints-advance"
    promise: str = "the sequence number of a checkpoint never goes down, and none disappears"
    remedy: str = "Save a checkpoint in one step, and only over an older one of the same attempt."

    def check(self, evidence: Evidence) -> Finding:
        """Compare each image with the one before it."""
        return broken_if(self._setbacks(evidence))

    def _setbacks(self, evidence: Evidence) -> Iterator[str]:
        last: dict[str, int] = {}
        for when, image in evidence.images:
            books = image.read(self.read_books, image.worker_dir)
            now = {row.attempt_id: row.seq for row in books.checkpoints}
            for attempt_id, seq in last.items():
                if now.get(attempt_id, -1) < seq:
                    yield (
                        f"{when}: the checkpoint of attempt {attempt_id!r} "
                        f"went from {seq} to {now.get(attempt_id, 'nothing')}"
                    )
            last = now
