"""The tables of the coordinator's facts, for those who write and those who read, in any database.

The statements are what SQLite and PostgreSQL have in common, so both keep the same tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE_NAME: Final = "coordinator.db"
"""Name of the SQLite database in the world's directory."""

Value = str | int
Row = tuple[Value, ...]
"""A fact as its table has it; the values are in the order of `COLUMNS`."""

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "worker_commands": ("position", "command_id", "body"),
    "sessions": ("position", "session_id", "instance_id", "name", "node_id", "inventory"),
    "deliveries": ("position", "number", "command_id", "session_id"),
    "acks": ("position", "command_id", "session_id", "repeated"),
    "receipts": (
        "position",
        "outcome",
        "event_id",
        "session_id",
        "command_id",
        "attempt_id",
        "kind",
        "body",
    ),
    "heartbeats": ("position", "attempt_id", "command_id", "session_id", "progress"),
    "refusals": ("position", "command_id", "session_id", "reason"),
}
"""The columns of each table. ``position`` counts the facts of all tables."""

TABLES: Final = """
CREATE TABLE IF NOT EXISTS worker_commands (
    position INTEGER PRIMARY KEY, command_id TEXT NOT NULL UNIQUE, body TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS sessions (
    position INTEGER PRIMARY KEY, session_id TEXT NOT NULL, instance_id TEXT NOT NULL,
    name TEXT NOT NULL, node_id TEXT NOT NULL, inventory TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS deliveries (
    position INTEGER PRIMARY KEY, number INTEGER NOT NULL, command_id TEXT NOT NULL,
    session_id TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS acks (
    position INTEGER PRIMARY KEY, command_id TEXT NOT NULL, session_id TEXT NOT NULL,
    repeated INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS receipts (
    position INTEGER PRIMARY KEY, outcome TEXT NOT NULL, event_id TEXT NOT NULL,
    session_id TEXT NOT NULL, command_id TEXT NOT NULL, attempt_id TEXT NOT NULL,
    kind TEXT NOT NULL, body TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS heartbeats (
    position INTEGER PRIMARY KEY, attempt_id TEXT NOT NULL, command_id TEXT NOT NULL,
    session_id TEXT NOT NULL, progress TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS refusals (
    position INTEGER PRIMARY KEY, command_id TEXT NOT NULL, session_id TEXT NOT NULL,
    reason TEXT NOT NULL
);
"""
"""Creates the tables that are missing."""


def insert(table: str, count: int, mark: str) -> str:
    """Return the statement that inserts rows: one for all of them, so one transaction and trip.

    Args:
        table: One of `COLUMNS`.
        count: How many rows, at least one.
        mark: What stands for a value: ``?`` in SQLite, ``%s`` in psycopg.
    """
    columns = COLUMNS[table]
    marks = f"({', '.join([mark] * len(columns))})"
    names = ", ".join(columns)
    return f"INSERT INTO {table} ({names}) VALUES {', '.join([marks] * count)}"  # noqa: S608 - ours


def select(table: str) -> str:
    """Return the query for all rows of a table, in the order in which they happened.

    Args:
        table: One of `COLUMNS`.
    """
    return f"SELECT {', '.join(COLUMNS[table])} FROM {table} ORDER BY position"  # noqa: S608 - ours
