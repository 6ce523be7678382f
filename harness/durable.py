"""What a directory durably holds, as one digest: equal content, equal digest.

SQLite files are compared by their rows, because their bytes differ from run to run (the salts of a
write-ahead log are random) while what a program can read from them does not.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.workspace import Image

_MAGIC = b"SQLite format 3\x00"
_SIDE_FILES = ("-wal", "-shm", "-journal")


def image_digest(image: Image) -> str:
    """Return the digest of an image's ``worker/`` and ``world/``, in hexadecimal."""
    return hashlib.sha256("\n".join(_lines(image.path)).encode()).hexdigest()


def _lines(root: Path) -> Iterator[str]:
    for part in ("worker", "world"):
        for path in sorted(_files(root / part)):
            shown = path.relative_to(root).as_posix()
            if not shown.endswith(_SIDE_FILES):
                yield f"{shown} {_content(path)}"


def _files(directory: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(directory):
        yield from (Path(folder, name) for name in names)


def _content(path: Path) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    data = path.read_bytes()
    if data.startswith(_MAGIC) or (not data and path.with_name(path.name + "-wal").exists()):
        return _rows(path)
    return hashlib.sha256(data).hexdigest()


def _rows(path: Path) -> str:
    # Reading a database in WAL mode writes beside it, and an image never changes: read a copy.
    with tempfile.TemporaryDirectory(dir=path.parent.parent.parent) as scratch:
        for suffix in ("", "-wal", "-journal"):
            source = path.with_name(path.name + suffix)
            if source.exists():
                shutil.copyfile(source, Path(scratch, "db" + suffix))
        summary = hashlib.sha256()
        with closing(sqlite3.connect(Path(scratch, "db"))) as database:
            for statement in database.iterdump():
                summary.update(statement.encode())
        return summary.hexdigest()
