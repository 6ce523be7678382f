"""Tables of the SQLite databases in a crash image, and how they differ from those before."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from harness.images.digest import opened

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from pathlib import Path

    from harness.record.failure_schema import TableRow, TableState

_READ_ROWS = 5_000
_SHOWN_ROWS = 40
_SHOWN_SAME = 8
_CELL_CHARS = 160

Cells: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it was read.

    Attributes:
        columns: Names of its columns.
        rows: Its rows by their identity: the primary key, or the whole row with a count.
        total: How many rows it has; more than `rows` when it is too large to be read.
    """

    columns: tuple[str, ...] = ()
    rows: dict[Cells, Cells] = field(default_factory=dict)
    total: int = 0


def read_tables(database: Path) -> tuple[dict[str, Table], str]:
    """Read every table of a database.

    Args:
        database: Its file, which lies still.

    Returns:
        The tables by name, and a digest of the schema and of every row.

    Raises:
        sqlite3.Error: It cannot be read.
    """
    with opened(database) as connection:
        connection.text_factory = lambda data: data.decode("utf-8", "backslashreplace")
        summary = hashlib.sha256()
        schema = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2")
        for row in schema.fetchall():
            summary.update(repr(row).encode())
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
            " AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name"
        ).fetchall()
        tables = {name: _read(connection, name, summary.update) for (name,) in names}
        return tables, summary.hexdigest()


def _read(connection: sqlite3.Connection, name: str, digest: Callable[[bytes], None]) -> Table:
    quoted = '"' + name.replace('"', '""') + '"'
    described = connection.execute(f"PRAGMA table_info({quoted})").fetchall()
    columns = tuple(str(row[1]) for row in described)
    keys = [index for index, row in enumerate(described) if row[5]]
    order = ", ".join(str(index + 1) for index in (keys or range(len(columns))))
    query = f"SELECT * FROM {quoted} ORDER BY {order}"  # noqa: S608 - quoted
    total = 0
    rows: dict[Cells, Cells] = {}
    seen: dict[Cells, int] = {}
    for values in connection.execute(query):
        digest(repr(values).encode())
        total += 1
        if total > _READ_ROWS:
            continue
        cells = tuple(_cell(value) for value in values)
        identity = tuple(cells[index] for index in keys) or cells
        seen[identity] = seen.get(identity, 0) + 1
        rows[identity if seen[identity] == 1 else (*identity, f"#{seen[identity]}")] = cells
    return Table(columns, rows, total)


def _cell(value: object) -> str:
    """Show a value; one that is cut keeps its length and checksum, so that it can be compared."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"{len(value)} bytes, sha256 {hashlib.sha256(value).hexdigest()[:16]}"
    text = str(value)
    if len(text) <= _CELL_CHARS:
        return text
    checksum = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    return f"{text[:_CELL_CHARS]}… ({len(text)} characters, sha256 {checksum})"


def compare(database: str, name: str, before: Table | None, now: Table | None) -> TableState:
    """Say how a table differs from what it was; rows that changed are shown first.

    Args:
        database: Path of its database, to be shown.
        name: Its name.
        before: What it was, or None when there was none.
        now: What it is, or None when it is gone.
    """
    old, new = before or Table(), now or Table()
    rows = [_compared(old.rows.get(key), new.rows.get(key)) for key in new.rows | old.rows]
    chosen = _chosen(rows)
    note = ""
    if now is None:
        note = "the table is gone"
    elif max(new.total, old.total) > _READ_ROWS:
        note = f"compared by its first {_READ_ROWS} rows"
    return {
        "database": database,
        "table": name,
        "columns": list(new.columns or old.columns),
        "rows": chosen,
        "total": new.total,
        "left_out": max(new.total, len(rows)) - len(chosen),
        "note": note,
    }


def _compared(old: Cells | None, new: Cells | None) -> TableRow:
    if new is None:
        return {"change": "removed", "cells": list(old or ()), "before": []}
    if old is None:
        return {"change": "added", "cells": list(new), "before": []}
    if old == new:
        return {"change": "same", "cells": list(new), "before": []}
    return {"change": "changed", "cells": list(new), "before": list(old)}


def _chosen(rows: list[TableRow]) -> list[TableRow]:
    """Choose the rows to show, in their order: changes before the rest."""
    if len(rows) <= _SHOWN_ROWS:
        return rows
    changed = [index for index, row in enumerate(rows) if row["change"] != "same"]
    same = [index for index, row in enumerate(rows) if row["change"] == "same"]
    kept = sorted([*changed[:_SHOWN_ROWS], *same[: max(_SHOWN_SAME, 0)]])
    return [rows[index] for index in kept]
