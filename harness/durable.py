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
    """Return the digest of the ``worker/`` and ``world/`` of an image, or of a workspace at rest.

    Sockets and pipes do not count.
    """
    text = "\n".join(_lines(image.path))
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
    with open(path, "rb") as file:  # noqa: PTH123
        data = file.read()
    for suffix in _SIDE_FILES:
        if path.endswith(suffix) and _is_database(path.removesuffix(suffix)):
            return ""
    if data.startswith(_MAGIC) or (not data and os.path.exists(path + "-wal")):  # noqa: PTH110
        return _rows(Path(path))
    return hashlib.sha256(data).hexdigest()


def _is_database(path: str) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            start = file.read(len(_MAGIC))
    except OSError:
        return False
    # A database that was never checkpointed is still empty, and all of it is in its log.
    return start == _MAGIC or not start


def _rows(path: Path) -> str:
    sides = [path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")]
    if not any(side.exists() and side.stat().st_size for side in sides):
        # Nothing lies beside it, so the file is all there is, and nobody writes.
        return _dump(f"{path.absolute().as_uri()}?immutable=1")
    # Reading such a database writes beside it, and an image never changes: read a copy.
    with tempfile.TemporaryDirectory(prefix="durable-") as scratch:
        for source in (path, *sides):
            if source.exists():
                shutil.copyfile(source, Path(scratch, source.name))
        return _dump(Path(scratch, path.name).as_uri())


def _dump(uri: str) -> str:
    summary = hashlib.sha256()
    with closing(sqlite3.connect(uri, uri=True)) as database:
        for statement in database.iterdump():
            summary.update(statement.encode())
    return summary.hexdigest()
