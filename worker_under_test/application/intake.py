"""Command intake: admit the command, save it, then confirm it (INB-01)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.domain.attempt import Attempt
from worker_under_test.domain.command import Command, parse_command
from worker_under_test.domain.errors import DomainError
from worker_under_test.domain.order import Order, order_of
from worker_under_test.ports.local_store import Acceptance, Accepted

if TYPE_CHECKING:
    from worker_under_test.application.admission import Admission
    from worker_under_test.application.confirmation import Confirmation
    from worker_under_test.ports.bundle import Ports
    from worker_under_test.ports.command_stream import Delivery


@dataclass(frozen=True, slots=True)
class Received:
    """A well-formed command.

    Attributes:
        command: The command.
        order: What it orders the worker itself, or None if it is work.
    """

    command: Command
    order: Order | None


@dataclass(frozen=True, slots=True)
class Refused:
    """A command that was not saved.

    Attributes:
        reason: Why.
    """

    reason: str


class Intake:
    """Takes commands in.

    Args:
        ports: The store where commands are saved.
        confirmation: How the coordinator hears of it.
        admission: What decides about new commands.
    """

    def __init__(self, ports: Ports, confirmation: Confirmation, admission: Admission) -> None:
        self._ports = ports
        self._confirmation = confirmation
        self._admission = admission

    def receive(self, delivery: Delivery) -> Received | None:
        """Check what arrived.

        Args:
            delivery: A delivery of the stream.

        Returns:
            The command, or None if it is malformed: that is refused visibly and leaves no row,
            and it is never confirmed (INB-13).
        """
        received = self._read(delivery)
        if received is not None:
            crash_point("command.receive.after", command=received.command.command_id)
        return received

    def receive_again(self, delivery: Delivery, turned_away: frozenset[str]) -> Received | None:
        """Check what was asked for.

        Args:
            delivery: A command that waits at the coordinator.
            turned_away: The commands that are wanted; the stream brings every other.

        Returns:
            The command, or None if it is malformed or not wanted.
        """
        received = self._read(delivery)
        if received is None or received.command.command_id not in turned_away:
            return None
        return received

    def _read(self, delivery: Delivery) -> Received | None:
        try:
            command = parse_command(delivery.data)
            return Received(command, order_of(command))
        except DomainError as error:
            self._ports.observation.event("command refused", error, delivery=delivery.number)
            return None

    async def save(self, command: Command) -> Accepted | Refused:
        """Save a command, if it may come in.

        Args:
            command: A well-formed command.

        Returns:
            Its place in the store, or why it was not saved.

        Raises:
            Exception: The store failed; nothing is to be confirmed (INB-07).
        """
        async with self._admission.lock:
            reason = await self._refusal(command)
            if reason is not None:
                self._admission.turn_away(command.command_id)
                return Refused(reason)
            return await self._ports.store.accept(command, self._ports.ids.new("attempt"))

    async def _refusal(self, command: Command) -> str | None:
        while True:
            changes = self._admission.changes
            standing = await self._ports.store.standing(command.command_id)
            if standing.known:
                return None
            reason = self._admission.refusal(command, standing.open_attempts)
            # If an attempt ended while we looked, nobody would ask for the command again.
            if reason is None or changes == self._admission.changes:
                return reason

    async def answer(self, command: Command, saved: Accepted | Refused) -> bool:
        """Confirm or refuse a command: a repeat is confirmed again (INB-06, ADM-03).

        Args:
            command: The command.
            saved: What `save` said.

        Returns:
            Whether the coordinator confirmed that it heard of an acceptance.
        """
        if isinstance(saved, Refused):
            await self._confirmation.refuse(command, saved.reason)
            return False
        if saved.outcome is Acceptance.CONFLICTING:
            await self._confirmation.refuse(command, "known with other content")
            return False
        return await self._confirmation.acknowledge(command)

    def attempt_at(self, command: Command, saved: Accepted | Refused) -> Attempt | None:
        """Return the attempt that is to be executed: that of a new command, and no other.

        Args:
            command: The command.
            saved: What `save` said.
        """
        if isinstance(saved, Refused) or saved.outcome is not Acceptance.ACCEPTED:
            return None
        return Attempt(saved.attempt_id, command)
