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

    from harness.model.image import Image

_MAGIC = b"SQLite format 3\x00"
_SIDE_FILES = ("-wal", "-shm", "-journal")


def image_digest(image: Image) -> str:
    """Return the digest of the ``worker/`` and ``world/`` of an image, or of a workspace at rest.

    Sockets and pipes do not count. That of an image is worked out once: several experiments and
    questions ask for it.
    """
    return image.read(_digest, image.path)


def _digest(root: Path) -> str:
    text = "\n".join(_lines(root))
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def _lines(root: Path) -> Iterator[str]:
    cut = len(str(root)) + 1
    for part in ("worker", "world"):
        for path in sorted(_paths(str(root / part))):
            content = _content(path)
            if content:
                yield f"{path[cut:]} {content}"


def _paths(directory: str) -> Iterator[str]:
    """Give the paths of everything that is durable, as texts: this runs in every experiment."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield f"{entry.path}/"
                yield from _paths(entry.path)
            elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                yield entry.path


def _content(path: str) -> str:
    """Return what a path holds, or nothing if it is a part of the database beside it."""
    if path.endswith("/"):
        return "directory"
    if os.path.islink(path):  # noqa: PTH114
        return f"-> {os.readlink(path)}"  # noqa: PTH115
    file = Path(path)
    if is_side_file(file):
        return ""
    if is_database(file):
        return rows_digest(file)
    return hashlib.sha256(file.read_bytes()).hexdigest()


def is_database(path: Path) -> bool:
    """Tell whether a file is a SQLite database; one whose rows are all in its log is."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
    except OSError:
        return False
    return start == _MAGIC or (not start and path.with_name(path.name + "-wal").exists())


def is_side_file(path: Path) -> bool:
    """Tell whether a file is SQLite's own, beside a database."""
    return any(
        path.name.endswith(suffix) and is_database(path.with_name(path.name.removesuffix(suffix)))
        for suffix in _SIDE_FILES
    )


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
