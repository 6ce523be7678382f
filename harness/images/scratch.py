"""Scratch directories that nobody has to remember to delete.

Each is locked by the process that made it. When that process is gone, however it went, the lock is
gone too, and the next one to come along deletes the directory (flock(2)).
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path

from harness.images.deletion import remove_tree

_PREFIX = "crash-harness-"
_LOCK = "owner.lock"


def take_scratch(root: Path) -> Path:
    """Make a directory that is deleted at the latest by the next `sweep_scratch` after our end.

    Args:
        root: Where to make it.
    """
    path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
    fcntl.flock(os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC), fcntl.LOCK_EX)
    return path


def sweep_scratch(root: Path) -> tuple[str, ...]:
    """Delete the scratch directories below `root` whose owners are gone.

    Returns:
        What could not be deleted and why, a sentence each; it is tried again next time.
    """
    left = []
    for path in root.glob(f"{_PREFIX}*"):
        try:
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:  # being made, being deleted, or somebody else's
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            try:
                remove_scratch(path)
            except OSError as error:
                if path.exists():
                    left.append(
                        f"{path}, left by a run that is gone, cannot be deleted: {error.strerror}:"
                        f" {error.filename!r}"
                    )
        finally:
            os.close(lock)
    return tuple(left)


def remove_scratch(path: Path) -> None:
    """Delete a scratch directory, its lock last: without it nobody would dare to try again.

    Args:
        path: What `take_scratch` has given.

    Raises:
        OSError: Something cannot be deleted.
    """
    for entry in path.iterdir():
        if entry.name != _LOCK:
            remove_tree(entry)
    remove_tree(path)
