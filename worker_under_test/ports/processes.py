"""Child processes that may outlive the worker (PRC-01..PRC-07)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Which process: a pid alone is reused, and means nothing after a reboot (PRC-03, PRC-06).

    Attributes:
        pid: Its pid.
        start_time: When it started, in the kernel's clock ticks since the boot.
        boot_id: The kernel's name for the boot.
    """

    pid: int
    start_time: int
    boot_id: str


class Processes(Protocol):
    """Starts children, and finds them again."""

    async def prepare(self, token: str) -> None:
        """Make a child's directory, durably; there is none before, and so there was no child.

        Args:
            token: The child's token.
        """

    async def prepared(self, token: str) -> bool:
        """Tell whether `prepare` was done, so that a child may have been started.

        Args:
            token: The token.
        """

    async def spawn(self, token: str, argv: list[str]) -> ProcessIdentity:
        """Start a child that can be found by a token, and whose result is kept durably.

        Args:
            token: In its environment from the first moment (PRC-04); it is prepared.
            argv: Program and arguments.

        Returns:
            Its identity.

        Raises:
            OSError: It could not be started.
        """

    async def find(self, token: str) -> ProcessIdentity | None:
        """Look for a living child by its token.

        Args:
            token: The token.

        Returns:
            Its identity, or None if no living process of ours has the token.
        """

    async def wait(self, identity: ProcessIdentity) -> None:
        """Wait until a process has ended; returns at once if it is not alive any more.

        Args:
            identity: The process; another one under its pid is not waited for.
        """

    async def result(self, token: str) -> int | None:
        """Read how a child ended, from a durable place (PRC-05).

        Args:
            token: The token.

        Returns:
            Its exit code, or None if it left none: it is running, or was killed, or never began.
        """

    async def output(self, token: str) -> str:
        """Read the end of what a child wrote.

        Args:
            token: The token.
        """

    async def end(self, identity: ProcessIdentity, token: str) -> bool:
        """End a child, if it is proved to be ours: identity and token (PRC-07).

        Args:
            identity: The process.
            token: Its token.

        Returns:
            Whether it was ours and a signal was sent.
        """
