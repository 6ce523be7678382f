"""The running set: what this process executes right now, and how it is stopped (ADM-04).

It says nothing about the outside: that an attempt is not in it does not mean that nothing of it
runs anywhere (ADM-05).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from worker_under_test.domain.errors import DomainError, Kind

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator

    from worker_under_test.domain.event import AttemptEvent


class Handle:
    """The hold on one execution.

    Attributes:
        cancelled: A cancel was asked for (ADM-06).
    """

    def __init__(self) -> None:
        self.cancelled = False
        self._work: asyncio.Task[AttemptEvent | None] | None = None

    def hold(self, work: asyncio.Task[AttemptEvent | None]) -> None:
        """Take hold of the capability's task; one that was cancelled before it began is at once.

        Args:
            work: The task; nothing of the worker's own runs in it.
        """
        self._work = work
        if self.cancelled:
            work.cancel()

    def cancel(self) -> None:
        """Stop the capability, now or as soon as it is called."""
        self.cancelled = True
        if self._work is not None:
            self._work.cancel()


class Running:
    """This process's executions, by command."""

    def __init__(self) -> None:
        self._handles: dict[str, Handle] = {}

    def __len__(self) -> int:
        return len(self._handles)

    @contextmanager
    def entered(self, command_id: str) -> Iterator[Handle]:
        """Be in the set inside.

        Args:
            command_id: The command.

        Yields:
            The hold on it.

        Raises:
            DomainError: Of kind conflict, if the command is executed already.
        """
        if command_id in self._handles:
            raise DomainError(Kind.CONFLICT, f"command {command_id!r} is being executed already")
        handle = self._handles[command_id] = Handle()
        try:
            yield handle
        finally:
            del self._handles[command_id]

    def cancel(self, command_id: str) -> None:
        """Stop an execution; does nothing if this process has none of that command.

        Args:
            command_id: The command.
        """
        handle = self._handles.get(command_id)
        if handle is not None:
            handle.cancel()
