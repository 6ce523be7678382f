"""What the steps of a workflow do outside."""

from __future__ import annotations

from typing import Protocol


class Effects(Protocol):
    """The outside, which takes each key once."""

    async def apply(self, kind: str, key: str, token: str) -> None:
        """See to it that an effect has happened; asking again under the same key changes nothing.

        Args:
            kind: What is to be done.
            key: Which one it is: the same over all tries and restarts.
            token: Who asks.

        Raises:
            DeliveryError: It is not known to have happened; the cause says why.
        """
