"""Stores of the coordinator's facts while it is open: one protocol, chosen by URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from harness.model.errors import UnknownNameError, UsageError
from harness.world.coordinator.sqlite_store import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.world.coordinator.facts import CoordinatorFacts, Fact
    from harness.world.service import ServiceContext

_SCHEMES: Final = ("sqlite", "postgresql")


class FactStore(Protocol):
    """Facts that outlive a request; decides nothing.

    Whatever the store, `harness.world.coordinator.facts.read_facts` reads the facts from the
    world's directory once the store is closed, and from a copy of it after `snapshot`.
    """

    async def add(self, facts: Sequence[Fact]) -> None:
        """Commit facts of one kind, all or none; they are durable when this returns."""

    async def snapshot(self, destination: Path) -> None:
        """Complete a copy of the world's directory by what is not in the directory's files."""

    async def close(self) -> None:
        """Leave the facts in the world's directory, and close."""


async def open_store(database: str, context: ServiceContext, known: CoordinatorFacts) -> FactStore:
    """Open the store that a URL names.

    Args:
        database: ``""`` or ``"sqlite:"`` for a file in the world's directory, or the URL of a
            PostgreSQL database, ``postgresql://...``.
        context: What the experiment gives to the coordinator.
        known: The facts that the world's directory holds already.

    Returns:
        The open store with these facts; it must be closed.

    Raises:
        UsageError: There is no such store, or it is not installed.
        HarnessError: The database cannot be reached.
    """
    scheme, _, rest = (database or "sqlite:").partition(":")
    if scheme not in _SCHEMES:
        raise UnknownNameError("kind of database for the coordinator", scheme, _SCHEMES)
    if scheme == "sqlite":
        if rest:
            raise UsageError(
                f"coordinator database {database!r}: the SQLite file is always in the world's"
                " directory; say 'sqlite:' alone"
            )
        return await SqliteStore.open(context.world_dir)
    try:
        from harness.world.coordinator.postgres_store import PostgresStore  # noqa: PLC0415 - only when chosen
    except ImportError as error:
        raise UsageError(
            f"the coordinator's database is PostgreSQL, and psycopg cannot be loaded ({error});"
            " pip install crash-harness[postgres]"
        ) from None
    return await PostgresStore.open(database, context, known)
