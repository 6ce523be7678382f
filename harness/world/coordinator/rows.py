"""Facts as rows of their tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.model.canonical_json import canonical
from harness.world.coordinator.facts import (
    Ack,
    Delivery,
    Heartbeat,
    OfferedCommand,
    Receipt,
    Refusal,
    Session,
)
from harness.world.coordinator.schema import insert

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.world.coordinator.facts import Fact
    from harness.world.coordinator.schema import Row, Value


def rows(facts: Sequence[Fact]) -> tuple[str, list[Row]]:
    """Return facts of one kind as rows.

    Args:
        facts: At least one.

    Returns:
        The name of their table, and a row for each.
    """
    return _TABLES[type(facts[0])], [_row(fact) for fact in facts]


def insertion(facts: Sequence[Fact], mark: str) -> tuple[str, list[Value]]:
    """Return the one statement that inserts facts of one kind, and its values.

    Args:
        facts: At least one.
        mark: What stands for a value: ``?`` in SQLite, ``%s`` in psycopg.
    """
    table, found = rows(facts)
    return insert(table, len(found), mark), [value for row in found for value in row]


_TABLES: dict[type[Fact], str] = {
    OfferedCommand: "worker_commands",
    Session: "sessions",
    Delivery: "deliveries",
    Ack: "acks",
    Receipt: "receipts",
    Heartbeat: "heartbeats",
    Refusal: "refusals",
}


def _row(fact: Fact) -> Row:
    match fact:
        case OfferedCommand(position, command_id, body):
            return position, command_id, canonical(body)
        case Session(position, session_id, instance_id, name, node_id, inventory):
            return position, session_id, instance_id, name, node_id, canonical(inventory)
        case Delivery(position, number, command_id, session_id):
            return position, number, command_id, session_id
        case Ack(position, command_id, session_id, repeated):
            return position, command_id, session_id, int(repeated)
        case Receipt(e, outcome):
            ids = (e.event_id, e.session_id, e.command_id, e.attempt_id)
            return e.position, outcome, *ids, e.kind, canonical(e.body)
        case Heartbeat(position, attempt_id, command_id, session_id, progress):
            return position, attempt_id, command_id, session_id, canonical(progress)
        case Refusal(position, command_id, session_id, reason):
            return position, command_id, session_id, reason
