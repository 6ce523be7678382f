"""Scratch directories that nobody has to remember to delete.

Each is locked by the process that made it. When that process is gone, however it went, the lock is
gone too, and the next one to come along deletes the directory (flock(2)).
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from harness.images.tree import remove_tree

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


def sweep_scratch(root: Path) -> None:
    """Delete the scratch directories below `root` whose owners are gone."""
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
            with suppress(OSError):  # one that cannot be deleted is no reason not to go on
                remove_tree(path)
        finally:
            os.close(lock)
