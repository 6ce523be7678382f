"""The database file as a file: there or not, whole, writable, and held by one worker (IDN).

A new database is made beside its place and renamed into it when it is whole. So a file at its
place is never half made: one of no length was damaged, and is not taken for a first start.

The ``-wal`` file is part of the database. If it alone is deleted while the worker is down, the
commits in it are lost without a trace in the main file; nothing here can tell (IDN-04).
"""

from __future__ import annotations

import fcntl
import os
import stat
from typing import TYPE_CHECKING

from worker_under_test.adapters.places import sync
from worker_under_test.domain.errors import DomainError, Kind

if TYPE_CHECKING:
    from pathlib import Path

_MAGIC = b"SQLite format 3\0"


def lock(path: Path) -> int:
    """Hold a database, so that no second worker opens it (IDN-05).

    The kernel frees the lock when the process is dead; one that is merely stopped keeps it.

    Args:
        path: The database file.

    Returns:
        The descriptor that holds the lock until it is closed.

    Raises:
        DomainError: Of kind conflict, if another process holds it.
    """
    descriptor = os.open(
        path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644
    )
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise DomainError(
            Kind.CONFLICT, f"another worker holds the database {path}; two on one are refused"
        ) from error
    return descriptor


def must_be_made(path: Path, *, init: bool) -> bool:
    """Tell whether a database is to be made; otherwise see that the one there can be opened.

    Args:
        path: The database file.
        init: A missing one may be made.

    Returns:
        True if there is none and it may be made.

    Raises:
        DomainError: Of kind not found, if there is none and this is no first start; of kind
            invalid, if what is there is empty, no database, or cannot be written (IDN-03).
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        if init:
            return True
        raise DomainError(
            Kind.NOT_FOUND,
            f"there is no database at {path}: its identity and unreported work are lost. "
            "Start with --init only as a new worker",
        ) from None
    if not stat.S_ISREG(found.st_mode):
        raise damaged(path, "it is not a file")
    # The superuser may write to any file; the mode still says what was meant.
    if not found.st_mode & stat.S_IWUSR:
        raise DomainError(Kind.INVALID, f"the database {path} is read-only")
    with path.open("rb") as file:
        head = file.read(len(_MAGIC))
    if head != _MAGIC:
        raise damaged(path, "it is empty" if not head else "it does not begin like a database")
    return False


def damaged(path: Path, why: str) -> DomainError:
    """Return the error of a database that must not be used.

    Args:
        path: The database file.
        why: What is wrong with it.
    """
    return DomainError(
        Kind.INVALID, f"the database {path} is damaged ({why}); it is neither used nor replaced"
    )


def unfinished_path(path: Path) -> Path:
    """Return where a new database is made, cleared of what a crash left there.

    Args:
        path: Its place once it is whole.
    """
    unfinished = path.with_name(path.name + ".new")
    for suffix in ("", "-journal", "-wal", "-shm"):
        unfinished.with_name(unfinished.name + suffix).unlink(missing_ok=True)
    return unfinished


def put_in_place(unfinished: Path, path: Path) -> None:
    """Give a new database, whole and on disk, its place.

    Args:
        unfinished: Where it was made.
        path: Its place.
    """
    unfinished.replace(path)
    sync(path.parent)
