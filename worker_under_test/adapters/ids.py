"""Identities: random ones for use, seeded ones for runs that must be repeatable."""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter


class RandomIds:
    """An `IDGenerator` of random identities."""

    def begin(self, boot: int) -> None:
        """Enter a life; random identities need not know which."""

    def new(self, kind: str) -> str:
        """Make an identity."""
        return f"{kind}-{uuid.uuid4().hex}"


class SeededIds:
    """An `IDGenerator` whose identities follow from the seed, the boot and the order of calls.

    They read ``event-2-1-9f86d081``: the first event of the second start, under that seed.

    Args:
        seed: Tells two workers apart.
    """

    def __init__(self, seed: str) -> None:
        self._seed = hashlib.sha256(seed.encode()).hexdigest()[:8]
        self._boot = 0
        self._made: Counter[str] = Counter()

    def begin(self, boot: int) -> None:
        """Enter a life: counting starts anew under its number."""
        self._boot = boot
        self._made.clear()

    def new(self, kind: str) -> str:
        """Make an identity."""
        self._made[kind] += 1
        return f"{kind}-{self._boot}-{self._made[kind]}-{self._seed}"
