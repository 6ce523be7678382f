"""Where workspaces are made: a directory in which that is possible."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from harness.model.errors import HarnessError, UsageError
from harness.model.regular_file import shown_path

_PROC = Path("/proc/self/task")
_ROOM = 256 * 1024 * 1024
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def default_root() -> Path:
    """Return where workspaces are made when nothing is said: memory if there is room.

    A process kill leaves the page cache alone, so a file system in memory shows the same as a disk
    and is several times faster.
    """
    memory = Path("/dev/shm")  # noqa: S108 - a directory of our own is made in it
    try:
        free = os.statvfs(memory)
    except OSError:
        return Path(tempfile.gettempdir())
    if os.access(memory, os.W_OK) and free.f_bavail * free.f_frsize > _ROOM:
        return memory
    return Path(tempfile.gettempdir())


def usable_root(root: Path) -> Path:
    """Return a directory as an absolute path if workspaces can be made in it.

    Args:
        root: Directory for workspaces.

    Raises:
        UsageError: Nothing can be made there: it is not a directory, not writable, or `/proc`;
            or `/proc` is not there at all.
        HarnessError: The disk is full.
    """
    if not _PROC.exists():
        raise UsageError("/proc is not mounted, and what processes do is read there")
    root = root.absolute()
    try:
        # Not asked for by mode: a file system may refuse what its mode allows, and root may do all.
        made = Path(tempfile.mkdtemp(prefix=".crash-harness-", dir=root))
    except OSError as error:
        said = f"no workspace can be made in {shown_path(root)}: {error.strerror}"
        if error.errno in _FULL:
            raise HarnessError(said) from None
        raise UsageError(f"{said}; give a directory that can be written to (--root)") from None
    made.rmdir()
    return root
