"""Identities from a port, so that a test controls them (ATT-12)."""

from __future__ import annotations

from typing import Protocol


class IDGenerator(Protocol):
    """Makes identities that are never made again."""

    def begin(self, boot: int) -> None:
        """Enter a process life; identities of two lives never meet.

        Args:
            boot: Number of the start, as the store counts it.
        """

    def new(self, kind: str) -> str:
        """Make an identity.

        Args:
            kind: What it is for, for example ``event``; the identity starts with it.

        Returns:
            A new identity.
        """
