"""Where commands come from. The stream only transports; facts are in the inbox (INB-14)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from worker_under_test.domain.registration import Session


@dataclass(frozen=True, slots=True)
class Delivery:
    """A command's body as it arrived, not checked.

    Attributes:
        number: The delivery's number, as text; for the reader only.
        data: The body.
    """

    number: str
    data: str


class CommandStream(Protocol):
    """The deliveries of a session. Every failure is a `DeliveryError`."""

    async def open(self, session: Session) -> list[Delivery]:
        """Connect and read the backlog up to the mark that says it is complete.

        Args:
            session: The session whose commands are wanted.

        Returns:
            Every command that was waiting, oldest first.
        """

    async def next(self) -> Delivery:
        """Wait for the next command; the one wait in the worker that has no bound.

        Returns:
            The next command.
        """

    async def waiting(self, session: Session) -> list[Delivery]:
        """Ask for the commands that the coordinator holds and nobody has confirmed (SES-06).

        Args:
            session: The session.

        Returns:
            Those commands, oldest first, without reading the stream.
        """

    async def close(self) -> None:
        """Leave the stream; does nothing if it is not open."""
