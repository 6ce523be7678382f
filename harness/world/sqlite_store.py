"""The coordinator's facts in SQLite: a file in the world's directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import aiosqlite

from harness.world.coordinator_schema import FILE_NAME, TABLES, insert
from harness.world.fact_rows import rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.world.facts import Fact

_SCRIPT: Final = f"""
-- The world is not subject to power loss: its facts have to outlive processes only, and a page that
-- was written outlives those without fsync.
PRAGMA synchronous = OFF;
PRAGMA journal_mode = WAL;
-- The main file does not change while the coordinator is open, so a copy of it and then of its log
-- is consistent at any moment, whoever makes it.
PRAGMA wal_autocheckpoint = 0;
BEGIN;
{TABLES}
COMMIT;
"""


class SqliteStore:
    """A `harness.world.fact_store.FactStore` in SQLite.

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
        connection = await aiosqlite.connect(world_dir / FILE_NAME, isolation_level=None)
        try:
            await connection.executescript(_SCRIPT)
        except BaseException:
            await connection.close()
            raise
        return cls(connection)

    async def add(self, facts: Sequence[Fact]) -> None:
        """Commit facts of one kind.

        Args:
            facts: What happened at once; nothing to do when there are none.
        """
        if not facts:
            return
        # One statement: in autocommit mode that is one transaction and, on the way to aiosqlite's
        # thread and back, one trip.
        table, values = rows(facts)
        await self._connection.execute(
            insert(table, len(values), "?"), [value for row in values for value in row]
        )

    async def snapshot(self, destination: Path) -> None:
        """Do nothing: whoever copies the directory copies the database."""

    async def close(self) -> None:
        """Close the database; SQLite moves its log into the main file."""
        await self._connection.close()
