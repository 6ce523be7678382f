"""The coordinator's facts in PostgreSQL, in tables like those that it has in SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.world.coordinator.marker_file import say_elsewhere, write_facts
from harness.world.coordinator.postgres_connection import PostgresLink
from harness.world.coordinator.rows import insertion, rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.world.coordinator.facts import CoordinatorFacts, Fact
    from harness.world.service import ServiceContext


class PostgresStore:
    """A `harness.world.coordinator.store.FactStore` in PostgreSQL; one at a time on one link.

    What the world's directory had goes into the database when the store is opened; what the
    database has goes into the directory when it is closed, and into every copy, as the same SQLite
    file. So oracles, crash images and kept failures need no server, and an image that was made with
    one database can be opened with the other.

    Args:
        link: Connected, with the tables of this experiment.
        world_dir: The workspace's ``world/``.
    """

    def __init__(self, link: PostgresLink, world_dir: Path) -> None:
        self._link = link
        self._world_dir = world_dir

    @classmethod
    async def open(
        cls, url: str, context: ServiceContext, known: CoordinatorFacts
    ) -> PostgresStore:
        """Open the store.

        Args:
            url: URL of the database.
            context: What the experiment gives to the coordinator.
            known: The facts that the world's directory holds already.

        Returns:
            The open store with these facts; it must be closed.

        Raises:
            UsageError: The URL is not well formed.
            HarnessError: The database cannot be reached.
        """
        link = context.shared.get(PostgresLink, url, lambda: PostgresLink(url))
        await link.begin()
        for facts in known.kinds():
            if facts:
                await link.load(*rows(facts))
        say_elsewhere(context.world_dir, str(link))
        return cls(link, context.world_dir)

    async def add(self, facts: Sequence[Fact]) -> None:
        """Commit facts of one kind.

        Args:
            facts: What happened at once; nothing to do when there are none.
        """
        if facts:
            await self._link.execute(*insertion(facts, "%s"))

    async def snapshot(self, destination: Path) -> None:
        """Write the facts into a copy of the world's directory.

        Args:
            destination: The copy.
        """
        write_facts(destination, await self._link.read())

    async def close(self) -> None:
        """Write the facts into the world's directory; the link stays for the next experiment."""
        await self.snapshot(self._world_dir)
