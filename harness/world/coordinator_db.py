"""The coordinator's database, written: one statement and one commit for what happens at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import aiosqlite

from harness.jsontext import canonical
from harness.world.coordinator_schema import FILE_NAME, SCHEMA

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.world.facts import (
        Ack,
        Delivery,
        Heartbeat,
        OfferedCommand,
        Receipt,
        Refusal,
        Session,
    )

_COMMANDS: Final = "INSERT INTO commands (position, command_id, body) VALUES "
_SESSIONS: Final = (
    "INSERT INTO sessions (position, session_id, instance_id, name, node_id, inventory) VALUES "
)
_DELIVERIES: Final = "INSERT INTO deliveries (position, number, command_id, session_id) VALUES "
_ACKS: Final = "INSERT INTO acks (position, command_id, session_id, repeated) VALUES "
_REFUSALS: Final = "INSERT INTO refusals (position, command_id, session_id, reason) VALUES "
_RECEIPTS: Final = (
    "INSERT INTO receipts"
    " (position, outcome, event_id, session_id, command_id, attempt_id, kind, body) VALUES "
)
_HEARTBEATS: Final = (
    "INSERT INTO heartbeats (position, attempt_id, command_id, session_id, progress) VALUES "
)

Value = str | int


class CoordinatorDb:
    """The writing end of the coordinator's database.

    Every method returns after its commit.

    Args:
        connection: An open connection in autocommit mode.
    """

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, world_dir: Path) -> CoordinatorDb:
        """Open the database, and create it where there is none.

        Args:
            world_dir: The workspace's ``world/``.

        Returns:
            The open database; it must be closed.
        """
        connection = await aiosqlite.connect(world_dir / FILE_NAME, isolation_level=None)
        try:
            await connection.executescript(SCHEMA)
        except BaseException:
            await connection.close()
            raise
        return cls(connection)

    async def add_commands(self, commands: Sequence[OfferedCommand]) -> None:
        """Add commands that are offered."""
        await self._insert(
            _COMMANDS, [(c.position, c.command_id, canonical(c.body)) for c in commands]
        )

    async def add_session(self, s: Session) -> None:
        """Add a registration."""
        row = (s.position, s.session_id, s.instance_id, s.name, s.node_id, canonical(s.inventory))
        await self._insert(_SESSIONS, [row])

    async def add_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        """Add commands that are about to be sent."""
        await self._insert(
            _DELIVERIES, [(d.position, d.number, d.command_id, d.session_id) for d in deliveries]
        )

    async def add_ack(self, a: Ack) -> None:
        """Add an acknowledgement."""
        await self._insert(_ACKS, [(a.position, a.command_id, a.session_id, int(a.repeated))])

    async def add_refusal(self, r: Refusal) -> None:
        """Add a refusal of a command."""
        await self._insert(_REFUSALS, [(r.position, r.command_id, r.session_id, r.reason)])

    async def add_receipt(self, receipt: Receipt) -> None:
        """Add a receipt of an event; an accepted one is the event itself."""
        e = receipt.event
        ids = (e.event_id, e.session_id, e.command_id, e.attempt_id)
        await self._insert(
            _RECEIPTS, [(e.position, receipt.outcome, *ids, e.kind, canonical(e.body))]
        )

    async def add_heartbeat(self, h: Heartbeat) -> None:
        """Add a sign of life."""
        row = (h.position, h.attempt_id, h.command_id, h.session_id, canonical(h.progress))
        await self._insert(_HEARTBEATS, [row])

    async def close(self) -> None:
        """Close the database; SQLite moves its log into the main file."""
        await self._connection.close()

    async def _insert(self, statement: str, rows: Sequence[tuple[Value, ...]]) -> None:
        # One statement for all rows: in autocommit mode that is one transaction and, on the way to
        # aiosqlite's thread and back, one trip.
        if not rows:
            return
        marks = "(" + ", ".join("?" * len(rows[0])) + ")"
        await self._connection.execute(
            statement + ", ".join([marks] * len(rows)), [value for row in rows for value in row]
        )
