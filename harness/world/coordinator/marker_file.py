"""The coordinator's file in the world's directory, when its facts are in another database.

While the coordinator is open the file says where they are; a copy and the directory that is left
behind have them in SQLite, as if they had been there all the time.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final

from harness.world.coordinator.schema import FILE_NAME, TABLES, insert

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from harness.world.coordinator.schema import Row

_ELSEWHERE: Final = "The coordinator's facts are in "


def say_elsewhere(world_dir: Path, where: str) -> None:
    """Put a note in the place of the file.

    Facts that were in the file would be out of date with the first that is added elsewhere.

    Args:
        world_dir: The workspace's ``world/``.
        where: Where the facts are, in words.
    """
    path = world_dir / FILE_NAME
    fresh = path.with_name(FILE_NAME + ".new")
    fresh.write_text(f"{_ELSEWHERE}{where}\n", encoding="utf-8")
    fresh.replace(path)
    for suffix in ("-wal", "-shm"):  # Left by a process that was killed.
        path.with_name(FILE_NAME + suffix).unlink(missing_ok=True)


def elsewhere(path: Path) -> str:
    """Return where the facts are when a file is such a note, in words; else nothing.

    Args:
        path: The coordinator's file.
    """
    note = _ELSEWHERE.encode()
    with path.open("rb") as file:
        if file.read(len(note)) != note:
            return ""
        return file.readline().decode().strip()


def write_facts(world_dir: Path, tables: Mapping[str, Sequence[Row]]) -> None:
    """Write facts into the file, in the place of what is there; a reader sees either.

    Args:
        world_dir: The workspace's ``world/``, or a copy of it.
        tables: The rows of every table.
    """
    path = world_dir / FILE_NAME
    fresh = path.with_name(FILE_NAME + ".new")
    fresh.unlink(missing_ok=True)  # Left by a process that was killed.
    with closing(sqlite3.connect(fresh, isolation_level=None)) as db:
        # Nobody knows the file before it is whole, so it needs neither journal nor fsync.
        db.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN; {TABLES}")
        for table, rows in tables.items():
            db.executemany(insert(table, 1, "?"), rows)
        db.execute("COMMIT")
    fresh.replace(path)
