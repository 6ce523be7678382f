"""``compute``: pure work, safe to do again (REC-03).

Payload ``{"seed": TEXT, "rounds": N}``, or ``{"source": NAME, "rounds": N}`` with the seed in a
file of the file server. The output is SHA-256 of the seed, taken N times. Recovery policy:
recompute.

Evidence: the version of the input, saved before the work is half done; the result names it and the
output. The window between the work and its record needs no care, since the same input gives the
same output. An input that is not the one that the evidence names is not computed with: the attempt
fails and says so.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING
from urllib.parse import quote

from harness.points import crash_point
from worker_under_test.capabilities.asking import Asking
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.event import AttemptEvent, EventKind
from worker_under_test.domain.progress import Progress
from worker_under_test.domain.recovery import Decision, Proposal, RecoveryPolicy

if TYPE_CHECKING:
    from worker_under_test.domain.command import Command
    from worker_under_test.domain.progress import Checkpoint
    from worker_under_test.ports.capability import ProgressReporter
    from worker_under_test.ports.clock import Clock
    from worker_under_test.ports.remote import Remote

MAX_ROUNDS = 1_000_000
"""Most rounds of one command; about half a second of work."""

MAX_SOURCE_BYTES = 8 << 20
"""Largest source."""

_OK = 200


class Compute:
    """The capability ``compute``, version 1.

    Args:
        remote: Where a source is fetched.
        clock: Where it waits for the file server.
    """

    name = "compute"
    version = 1
    policy = RecoveryPolicy.RECOMPUTE

    def __init__(self, remote: Remote, clock: Clock) -> None:
        self._asking = Asking(remote, clock)

    def recover(self, command: Command, checkpoint: Checkpoint | None) -> Proposal:  # noqa: ARG002
        """Recompute: the same input gives the same output (REC-03)."""
        return Proposal(Decision.RECOMPUTE, "the same input gives the same output")

    async def execute(self, command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
        """Hash the seed; report once, halfway.

        Args:
            command: The command.
            reporter: Line to the attempt.

        Returns:
            ``succeeded`` with the version of the input and the output.

        Raises:
            DomainError: Of kind invalid, if the payload is not well formed; of kind conflict, if
                the input is not the one that an earlier life began with.
        """
        rounds = command.payload.get("rounds")
        if type(rounds) is not int or not 1 <= rounds <= MAX_ROUNDS:
            raise DomainError(Kind.INVALID, f"rounds is not an integer from 1 to {MAX_ROUNDS}")
        seed, version = await self._input(command)
        self._must_be_the_same(version, reporter.checkpoint)
        half = rounds // 2
        value = _hashed(seed, half)
        progress = Progress("hash", "running", 100 * half // rounds, half, rounds)
        await reporter(progress, {"input": version})
        crash_point("compute.half.after", command=command.command_id)
        output = _hashed(value, rounds - half).hex()
        return AttemptEvent(EventKind.SUCCEEDED, {"input": version, "output": output})

    def _must_be_the_same(self, version: str, checkpoint: Checkpoint | None) -> None:
        begun_with = checkpoint.evidence.get("input") if checkpoint else None
        if begun_with is not None and begun_with != version:
            raise DomainError(
                Kind.CONFLICT, f"the input changed from {begun_with} to {version} meanwhile"
            )

    async def _input(self, command: Command) -> tuple[bytes, str]:
        seed, source = command.payload.get("seed"), command.payload.get("source")
        if isinstance(seed, str) and source is None:
            return seed.encode(), command.digest
        if not isinstance(source, str) or seed is not None:
            raise DomainError(Kind.INVALID, "seed is not a text, nor is source alone")
        path = f"/files/{quote(source, safe='')}"
        reply = await self._asking.until_answered("GET", path, whole_up_to=MAX_SOURCE_BYTES)
        if reply.status != _OK:
            raise DomainError(Kind.NOT_FOUND, f"no source {source!r}: status {reply.status}")
        if len(reply.body) > MAX_SOURCE_BYTES:
            raise DomainError(Kind.INVALID, f"source {source!r} is too large")
        return reply.body, hashlib.sha256(reply.body).hexdigest()


def _hashed(value: bytes, rounds: int) -> bytes:
    for _ in range(rounds):
        value = hashlib.sha256(value).digest()
    return value
