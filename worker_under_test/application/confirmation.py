"""What the coordinator hears about a command that came in: acknowledged, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.domain.errors import is_delivery

if TYPE_CHECKING:
    from worker_under_test.application.current_session import CurrentSession
    from worker_under_test.domain.command import Command
    from worker_under_test.ports.bundle import Ports


class Confirmation:
    """Confirms and refuses; a failure on the way is visible and changes nothing here.

    Args:
        ports: The control plane.
        session: The session to speak under.
    """

    def __init__(self, ports: Ports, session: CurrentSession) -> None:
        self._ports = ports
        self._session = session

    async def acknowledge(self, command: Command) -> bool:
        """Confirm that a command is saved.

        Args:
            command: The command.

        Returns:
            Whether the coordinator heard it, as far as we know. If not, the command is executed
            all the same; it is delivered again and gets its answer then (INB-09, AMB-11).
        """
        crash_point("ack.send.before", command=command.command_id)
        try:
            await self._ports.control.acknowledge(self._session.session, command.command_id)
        except Exception as error:
            if not is_delivery(error):
                raise
            self._ports.observation.event("acknowledgement lost", error, command=command.command_id)
            return False
        crash_point("ack.send.after", command=command.command_id)
        return True

    async def refuse(self, command: Command, reason: str) -> None:
        """Refuse a command, visibly: nothing of it is saved here (AMB-20, INB-12).

        Args:
            command: The command.
            reason: Why.
        """
        self._ports.observation.event("command refused", command=command.command_id, reason=reason)
        crash_point("refusal.send.before", command=command.command_id)
        try:
            await self._ports.control.refuse(self._session.session, command.command_id, reason)
        except Exception as error:
            if not is_delivery(error):
                raise
            self._ports.observation.event("refusal lost", error, command=command.command_id)
            return
        crash_point("refusal.send.after", command=command.command_id)
