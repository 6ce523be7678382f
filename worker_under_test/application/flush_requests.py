"""Requests for a round of sending, each with exactly one answer (OUT-16, OUT-19..OUT-21)."""

from __future__ import annotations

import asyncio

from worker_under_test.domain.errors import DomainError, Kind


class Round:
    """The requests that one round of sending answers.

    Args:
        requests: Those that were there when it began.
    """

    def __init__(self, requests: list[asyncio.Future[None]]) -> None:
        self._requests = requests

    def answer(self, error: Exception | None) -> None:
        """Answer those that are not answered yet; one that gave up is passed over (OUT-20).

        Args:
            error: What the round failed with, or None.
        """
        for request in self._requests:
            if not request.done():
                if error is None:
                    request.set_result(None)
                else:
                    request.set_exception(error)
        self._requests = []


class FlushRequests:
    """The requests that no round has taken yet."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []
        self._open = False

    def open(self) -> None:
        """Note that a sender begins."""
        self._open = True

    def ask(self) -> asyncio.Future[None]:
        """Put a request.

        Returns:
            Its answer, to be awaited.

        Raises:
            DomainError: Of kind conflict, if there is no sender.
        """
        if not self._open:
            raise _no_sender()
        request = asyncio.get_running_loop().create_future()
        self._waiting.append(request)
        return request

    def take(self) -> Round:
        """Return the requests that the round that begins now answers."""
        taken, self._waiting = self._waiting, []
        return Round(taken)

    def close(self) -> None:
        """Note that the sender ended; whoever still waits is told so."""
        self._open = False
        if self._waiting:
            self.take().answer(_no_sender())


def _no_sender() -> DomainError:
    return DomainError(Kind.CONFLICT, "there is no sender: the session is over")
