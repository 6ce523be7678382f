"""The coordinator's facts in SQLite: a file in the world's directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.world.coordinator.rows import insertion
from harness.world.coordinator.schema import FILE_NAME, TABLES
from harness.world.sqlite import open_for_writing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import aiosqlite

    from harness.world.coordinator.facts import Fact


class SqliteStore:
    """A `harness.world.coordinator.store.FactStore` in SQLite.

    Args:
        connection: An open connection in autocommit mode.
    """

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, world_dir: Path) -> SqliteStore:
        """Open the database, and create it where there is none.

        Args:
            world_dir: The workspace's ``world/``.

        Returns:
            The open store; it must be closed.
        """
        return cls(await open_for_writing(world_dir / FILE_NAME, TABLES))

    async def add(self, facts: Sequence[Fact]) -> None:
        """Commit facts of one kind.

        Args:
            facts: What happened at once; nothing to do when there are none.
        """
        if facts:
            # One statement: in autocommit mode that is one transaction and, on the way to
            # aiosqlite's thread and back, one trip.
            await self._connection.execute(*insertion(facts, "?"))

    async def snapshot(self, destination: Path) -> None:
        """Do nothing: whoever copies the directory copies the database."""

    async def close(self) -> None:
        """Close the database; SQLite moves its log into the main file."""
        await self._connection.close()
