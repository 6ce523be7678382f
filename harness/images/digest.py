"""The digest of a directory: equal durable content, equal digest.

SQLite files are compared by their rows, because their bytes differ from run to run (the salts of a
write-ahead log are random) while what a program can read from them does not.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import stat
import tempfile
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

from harness.images.tree import data_segments, has_holes, readable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.model.image import Image

PARTS = ("worker", "world", "home", "tmp", "cwd")
"""The directories of a workspace that are durable."""

_AT_ONCE = 1 << 20
_HEADER = ("user_version", "application_id", "encoding", "page_size", "auto_vacuum")
_FORMATS = slice(18, 20)
"""Where the header says how the file is written and read (SQLite, file format, 1.3.3)."""

_MAGIC = b"SQLite format 3\x00"
_LOGS = ("-wal", "-journal")
_SIDE_FILES = (*_LOGS, "-shm")


def image_digest(image: Image) -> str:
    """Return the digest of the content of an image, or of a workspace at rest.

    That of an image is worked out once: several experiments and questions ask for it.
    """
    return image.read(_digest, image.path)


def _digest(root: Path) -> str:
    text = "\n".join(_lines(root))
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def _lines(root: Path) -> Iterator[str]:
    home = str(root)
    cut = len(home) + 1
    for part in PARTS:
        for path in sorted(_paths(f"{home}/{part}")):
            content = _content(path, home)
            if content:
                yield f"{path[cut:]} {content}"


def _paths(directory: str) -> Iterator[str]:
    """Give the paths of everything that is durable, as texts: this runs in every experiment."""
    waiting = [directory]
    while waiting:
        path = waiting.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        yield f"{entry.path}/"
                        waiting.append(entry.path)
                    else:
                        yield entry.path
        except OSError:  # not there, or no leave to look
            continue


def _content(path: str, home: str) -> str:
    """Return what a path holds, or nothing if it is a part of the database beside it."""
    if path.endswith("/"):
        return "directory"
    status = os.stat(path, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        text = os.readlink(path)
        if text == home or text.startswith(f"{home}/"):
            text = os.path.relpath(text, os.path.dirname(path))
        return f"-> {text}"
    if not stat.S_ISREG(status.st_mode):
        return f"special {stat.S_IFMT(status.st_mode):o} {status.st_rdev}"
    if is_side_file(path):
        return ""
    if not is_database(path):
        return _bytes_digest(path, status)
    # Damaged, in whatever way: then its bytes count, and those beside it.
    with suppress(sqlite3.Error, ValueError, TypeError, AttributeError):
        return rows_digest(path)
    sides = (path + suffix for suffix in _SIDE_FILES)
    return _bytes_digest(path, status) + "".join(
        _bytes_digest(side, os.stat(side)) for side in sides if os.path.exists(side)
    )


def _bytes_digest(path: str, status: os.stat_result) -> str:
    try:
        with readable(path, status):
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except PermissionError:
        return "unreadable"
    summary = hashlib.sha256(str(status.st_size).encode())
    whole = [(0, status.st_size)]
    try:
        for start, end in data_segments(fd, status.st_size) if has_holes(status) else whole:
            summary.update(f"{start}:".encode())
            position = os.lseek(fd, start, os.SEEK_SET)
            while position < end and (data := os.read(fd, min(_AT_ONCE, end - position))):
                summary.update(data)
                position += len(data)
    finally:
        os.close(fd)
    return summary.hexdigest()


def is_database(path: Path | str) -> bool:
    """Tell whether a file is a SQLite database; one whose rows are all in its log is."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        start = os.read(fd, len(_MAGIC))
    except OSError:  # a directory
        return False
    finally:
        os.close(fd)
    return start == _MAGIC or (not start and os.path.exists(f"{os.fspath(path)}-wal"))


def is_side_file(path: Path | str) -> bool:
    """Tell whether a file is SQLite's own, beside a database."""
    name = os.fspath(path)
    return any(
        name.endswith(suffix) and is_database(name.removesuffix(suffix)) for suffix in _SIDE_FILES
    )


def rows_digest(path: Path | str) -> str:
    """Return the digest of what a program can read from a database.

    Every row with its number where it has one, so that the next number is known; the schema; and of
    the header what a program can ask for.

    Raises:
        sqlite3.Error: It cannot be read.
        ValueError: Its schema has a name that no statement can have.
    """
    with open(path, "rb", buffering=0) as file:
        formats = file.read(_FORMATS.stop)[_FORMATS]  # legacy, or write-ahead log
    summary = hashlib.sha256(formats)
    with opened(path) as database:
        # Text in a database need not be UTF-8; then it counts as bytes.
        database.text_factory = lambda text: text.decode(errors="surrogateescape")
        for name in _HEADER:
            summary.update(repr(database.execute(f"PRAGMA {name}").fetchone()).encode())
        schema = database.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid"
        ).fetchall()
        summary.update(repr(schema).encode(errors="surrogateescape"))
        for kind, name, _, sql in schema:
            if kind == "table" and not (sql or "").upper().startswith("CREATE VIRTUAL"):
                for row in _rows(database, name.replace('"', '""')):
                    summary.update(repr(row).encode(errors="surrogateescape"))
    return summary.hexdigest()


def _rows(database: sqlite3.Connection, table: str) -> sqlite3.Cursor:
    with suppress(sqlite3.OperationalError):  # a table without row numbers
        return database.execute(f'SELECT rowid, * FROM "{table}" ORDER BY rowid')  # noqa: S608
    return database.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - in the order of its key


@contextmanager
def opened(path: Path | str) -> Iterator[sqlite3.Connection]:
    """Open a SQLite database that nobody writes, for reading, and leave no file beside it.

    Args:
        path: Its file.

    Raises:
        sqlite3.Error: It cannot be read.
    """
    name = os.path.abspath(path)
    logs = [f"{name}{suffix}" for suffix in _LOGS]
    if not any(os.path.exists(log) and os.path.getsize(log) for log in logs):
        # Without a log the file is the whole database.
        uri = f"file://{quote(os.fsencode(name))}?immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as db:
            yield db
        return
    # Reading such a database writes beside it, and an image never changes: read a copy.
    with tempfile.TemporaryDirectory(prefix="durable-") as scratch:
        copy = os.path.join(scratch, os.path.basename(name))
        for source, target in ((name, copy), *((log, copy + log[len(name) :]) for log in logs)):
            if os.path.exists(source):
                shutil.copyfile(source, target)
        with closing(sqlite3.connect(copy)) as db:
            yield db
