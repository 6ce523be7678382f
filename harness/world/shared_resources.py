"""What outlives a stage: made once in a world's process, closed when the process ends."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable


class Closable(Protocol):
    """Something that must be closed."""

    async def close(self) -> None:
        """Close it."""


T = TypeVar("T", bound=Closable)


class SharedResources:
    """Keeps what is too slow to make for every experiment, for example connections."""

    def __init__(self) -> None:
        self._kept: dict[tuple[type, str], Closable] = {}
        self._closing = AsyncExitStack()

    def get(self, kind: type[T], name: str, make: Callable[[], T]) -> T:
        """Return what is kept, or make and keep it.

        Args:
            kind: What it is.
            name: Which one.
            make: Makes it the first time.
        """
        kept = self._kept.get((kind, name))
        if isinstance(kept, kind):
            return kept
        made = make()
        self._kept[kind, name] = made
        self._closing.push_async_callback(made.close)
        return made

    async def close(self) -> None:
        """Close everything, the newest first."""
        self._kept.clear()
        await self._closing.aclose()
