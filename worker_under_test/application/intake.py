"""Command intake: save the command, then confirm it (INB-01)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.domain.attempt import Attempt
from worker_under_test.domain.command import Command, parse_command
from worker_under_test.domain.errors import DomainError, is_delivery
from worker_under_test.ports.local_store import Acceptance, Accepted

if TYPE_CHECKING:
    from worker_under_test.application.current_session import CurrentSession
    from worker_under_test.ports.bundle import Ports
    from worker_under_test.ports.command_stream import Delivery


@dataclass(frozen=True, slots=True)
class Admitted:
    """A new attempt that is to be executed.

    Attributes:
        attempt: The attempt.
        acknowledged: The coordinator confirmed the ACK.
    """

    attempt: Attempt
    acknowledged: bool


class Intake:
    """Takes commands in.

    Args:
        ports: The store where commands are saved, the control plane where they are confirmed.
        session: The session to confirm under.
    """

    def __init__(self, ports: Ports, session: CurrentSession) -> None:
        self._ports = ports
        self._session = session
        self._admission = asyncio.Lock()

    def receive(self, delivery: Delivery) -> Command | None:
        """Check what arrived.

        Args:
            delivery: A delivery of the stream.

        Returns:
            The command, or None if it is malformed: that is refused visibly and leaves no row,
            and it is never confirmed (INB-13).
        """
        try:
            command = parse_command(delivery.data)
        except DomainError as error:
            self._ports.observation.event("command refused", error, delivery=delivery.number)
            return None
        crash_point("command.receive.after", command=command.command_id)
        return command

    async def accept(self, command: Command) -> Admitted | None:
        """Save a command, then confirm it.

        Args:
            command: A well-formed command.

        Returns:
            Its attempt if it is new, and None otherwise: a repeat is only confirmed again
            (INB-06), and other content under a known id is refused visibly (INB-12).

        Raises:
            Exception: The store failed; nothing was confirmed (INB-07).
        """
        saved = await self._save(command)
        if saved.outcome is Acceptance.CONFLICTING:
            self._ports.observation.event("command conflicts", command=command.command_id)
            return None
        acknowledged = await self._acknowledge(command)
        if saved.outcome is Acceptance.REPEATED:
            return None
        return Admitted(Attempt(saved.attempt_id, command), acknowledged)

    async def _save(self, command: Command) -> Accepted:
        # The lock makes room for a capacity check that must hold until the row is there (ADM-01).
        async with self._admission:
            return await self._ports.store.accept(command, self._ports.ids.new("attempt"))

    async def _acknowledge(self, command: Command) -> bool:
        crash_point("ack.send.before", command=command.command_id)
        try:
            await self._ports.control.acknowledge(self._session.session, command.command_id)
        except Exception as error:
            if not is_delivery(error):
                raise
            # The command is saved, so it is executed all the same; the coordinator will deliver
            # it again and get its answer then (INB-09, AMB-11).
            self._ports.observation.event("acknowledgement lost", error, command=command.command_id)
            return False
        crash_point("ack.send.after", command=command.command_id)
        return True
