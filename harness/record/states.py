"""The contents of a crash image, files and tables, compared with the image before."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.images.digest import is_database, is_side_file
from harness.record.tables import Table, compare, read_tables
from harness.world.coordinator.schema import FILE_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.record.failure_schema import FileRow, StateRow, TableState

_COORDINATOR = f"world/{FILE_NAME}"
_FILES = 400
_LARGEST_BYTES = 256 * 1024 * 1024
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Held:
    """What an image holds.

    Attributes:
        files: Size and checksum of each file, by its path.
        tables: Tables by the path of their database and their name.
        unreadable: Databases that cannot be read, and why.
    """

    files: dict[str, tuple[int, str]] = field(default_factory=dict)
    tables: dict[tuple[str, str], Table] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)


def read_held(image: Path) -> Held:
    """Read what an image holds.

    Databases are known by their rows: their bytes differ from run to run. SQLite's own files
    beside them do not count, nor do sockets and pipes.

    Args:
        image: Directory with ``worker/`` and ``world/``.
    """
    held = Held()
    for path in sorted(_files(image)):
        shown = path.relative_to(image).as_posix()
        if is_side_file(path):
            continue
        if path.is_symlink():
            held.files[shown] = (0, f"link to {path.readlink()}")
        elif is_database(path):
            try:
                tables, digest = read_tables(path)
            except sqlite3.Error as error:
                held.unreadable[shown] = str(error)
                held.files[shown] = (0, f"not readable: {error}")
            else:
                # Its size is SQLite's affair, as its bytes are.
                held.files[shown] = (0, f"rows:{digest}")
                held.tables.update({(shown, name): table for name, table in tables.items()})
        else:
            held.files[shown] = (path.stat().st_size, _checksum(path))
    return held


def _files(image: Path) -> Iterator[Path]:
    for part in ("worker", "world"):
        for folder, _, names in os.walk(image / part):
            for name in names:
                path = Path(folder, name)
                if path.is_file() or path.is_symlink():
                    yield path


def _checksum(path: Path) -> str:
    if path.stat().st_size > _LARGEST_BYTES:
        return "not read: too large"
    summary = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            summary.update(chunk)
    return f"sha256:{summary.hexdigest()}"


def state(incarnation: int, title: str, before: Held, now: Held) -> StateRow:
    """Describe an image against the one before.

    Args:
        incarnation: After which process life.
        title: What it is, for the reader.
        before: The image before.
        now: The image.
    """
    files = [_file(path, before, now) for path in sorted(before.files | now.files)]
    shown = [row for row in files if row["change"] != "same"][:_FILES]
    shown += [row for row in files if row["change"] == "same"][: _FILES - len(shown)]
    return {
        "incarnation": incarnation,
        "title": title,
        "files": sorted(shown, key=lambda row: row["path"]),
        "files_left_out": len(files) - len(shown),
        "tables": list(_tables(before, now)),
    }


def _file(path: str, before: Held, now: Held) -> FileRow:
    if path not in now.files:
        size, checksum = before.files[path]
        return {"path": path, "size_bytes": size, "checksum": checksum, "change": "removed"}
    size, checksum = now.files[path]
    if path not in before.files:
        return {"path": path, "size_bytes": size, "checksum": checksum, "change": "added"}
    same = before.files[path] == now.files[path]
    return {
        "path": path,
        "size_bytes": size,
        "checksum": checksum,
        "change": "same" if same else "changed",
    }


def _tables(before: Held, now: Held) -> Iterator[TableState]:
    for database, name in sorted(before.tables | now.tables):
        # What the coordinator keeps is told by the history, fact by fact.
        if database in now.unreadable or database == _COORDINATOR:
            continue
        key = (database, name)
        yield compare(database, name, before.tables.get(key), now.tables.get(key))
