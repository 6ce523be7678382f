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
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.workspace import Image

_MAGIC = b"SQLite format 3\x00"
_SIDE_FILES = ("-wal", "-shm", "-journal")


def image_digest(image: Image) -> str:
    """Return the digest of the ``worker/`` and ``world/`` of an image, or of a workspace at rest.

    Sockets and pipes do not count.
    """
    return hashlib.sha256("\n".join(_lines(image.path)).encode()).hexdigest()


def _lines(root: Path) -> Iterator[str]:
    for part in ("worker", "world"):
        for path in sorted(_files(root / part)):
            shown = path.relative_to(root).as_posix()
            if not shown.endswith(_SIDE_FILES):
                yield f"{shown} {_content(path)}"


def _files(directory: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(directory):
        for name in names:
            path = Path(folder, name)
            if path.is_file() or path.is_symlink():
                yield path


def _content(path: Path) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    if is_database(path):
        return rows_digest(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_database(path: Path) -> bool:
    """Tell whether a file is a SQLite database; one whose rows are all in its log is."""
    with path.open("rb") as file:
        start = file.read(len(_MAGIC))
    return start == _MAGIC or (not start and path.with_name(path.name + "-wal").exists())


def is_side_file(path: Path) -> bool:
    """Tell whether a file is SQLite's own, beside a database."""
    return path.name.endswith(_SIDE_FILES)


def rows_digest(path: Path) -> str:
    """Return the digest of what a database holds."""
    summary = hashlib.sha256()
    with opened(path) as database:
        # Text in a database may be no UTF-8; it counts as the bytes that it is.
        database.text_factory = lambda text: text.decode(errors="surrogateescape")
        for statement in database.iterdump():
            summary.update(statement.encode(errors="surrogateescape"))
    return summary.hexdigest()


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a SQLite database that lies still, for reading, and leave no trace of it.

    Args:
        path: Its file.

    Raises:
        sqlite3.Error: It cannot be read.
    """
    sides = [path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")]
    if not any(side.exists() and side.stat().st_size for side in sides):
        # Nothing lies beside it, so the file is all there is, and nobody writes.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)) as db:
            yield db
        return
    # Reading such a database writes beside it, and an image never changes: read a copy.
    with tempfile.TemporaryDirectory(prefix="durable-") as scratch:
        for source in (path, *sides):
            if source.exists():
                shutil.copyfile(source, Path(scratch, source.name))
        with closing(sqlite3.connect(Path(scratch, path.name))) as db:
            yield db
