"""The coordinator, as far as the worker speaks to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from worker_under_test.domain.attempt import Attempt
    from worker_under_test.domain.event import Event
    from worker_under_test.domain.progress import Progress
    from worker_under_test.domain.registration import Registration, Session


class ControlPlane(Protocol):
    """Requests to the coordinator.

    Every failure is a `DeliveryError` whose cause says what happened; a refusal's cause is a
    `DomainError` of the kind that the coordinator gave.
    """

    async def register(self, registration: Registration) -> Session:
        """Open a session.

        Args:
            registration: Who the worker is.

        Returns:
            The session.
        """

    async def acknowledge(self, session: Session, command_id: str) -> None:
        """Confirm that a command is saved.

        Args:
            session: The current session.
            command_id: The command.
        """

    async def refuse(self, session: Session, command_id: str, reason: str) -> None:
        """Tell that a command is not accepted; it stays the coordinator's (AMB-20).

        Args:
            session: The current session.
            command_id: The command; nothing of it is saved here.
            reason: Why, in words.
        """

    async def send_event(self, session: Session, event: Event) -> None:
        """Deliver an event; returns when the server has stored it.

        Args:
            session: The current session.
            event: The event, with the same identity at each try.
        """

    async def heartbeat(self, session: Session, attempt: Attempt, progress: Progress) -> None:
        """Tell that an attempt lives.

        Args:
            session: The current session.
            attempt: The attempt.
            progress: How far it is.
        """

    async def close(self) -> None:
        """Close the connections; does nothing if there are none."""
