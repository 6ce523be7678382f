"""``compute``: pure work, safe to do again (REC-03).

Payload ``{"seed": TEXT, "rounds": N}``. The output is SHA-256 of the seed, taken N times. Recovery
policy: recompute. The window between the work and its record needs no care, since the same input
gives the same output; the result names both, so that anyone can compare.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.event import AttemptEvent, EventKind
from worker_under_test.domain.progress import Progress
from worker_under_test.domain.recovery import RecoveryPolicy

if TYPE_CHECKING:
    from worker_under_test.domain.command import Command
    from worker_under_test.ports.capability import ProgressReporter

MAX_ROUNDS = 1_000_000
"""Most rounds of one command; about half a second of work."""


class Compute:
    """The capability ``compute``, version 1."""

    name = "compute"
    version = 1
    policy = RecoveryPolicy.RECOMPUTE

    async def execute(self, command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
        """Hash the seed; report once, halfway.

        Args:
            command: The command.
            reporter: Line to the attempt.

        Returns:
            ``succeeded`` with the digest of the input and the output.

        Raises:
            DomainError: Of kind invalid, if the payload is not well formed.
        """
        seed, rounds = command.payload.get("seed"), command.payload.get("rounds")
        if not isinstance(seed, str):
            raise DomainError(Kind.INVALID, "seed is not a text")
        if type(rounds) is not int or not 1 <= rounds <= MAX_ROUNDS:
            raise DomainError(Kind.INVALID, f"rounds is not an integer from 1 to {MAX_ROUNDS}")
        half = rounds // 2
        value = _hashed(seed.encode(), half)
        await reporter(Progress("hash", "running", 100 * half // rounds, half, rounds))
        output = _hashed(value, rounds - half).hex()
        return AttemptEvent(EventKind.SUCCEEDED, {"input": command.digest, "output": output})


def _hashed(value: bytes, rounds: int) -> bytes:
    for _ in range(rounds):
        value = hashlib.sha256(value).digest()
    return value
