"""Where workspaces are made: a directory in which that is possible."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from harness.model.errors import HarnessError, UsageError
from harness.model.regular_file import shown_path

_ROOM = 256 * 1024 * 1024
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def default_root() -> Path:
    """Return where workspaces are made when nothing is said: memory if there is room.

    A process kill leaves the page cache alone, so a file system in memory shows the same as a disk
    and is several times faster.

    Raises:
        UsageError: There is no directory for temporary files either.
    """
    memory = Path("/dev/shm")  # noqa: S108 - a directory of our own is made in it
    try:
        free = os.statvfs(memory)
    except OSError:
        return _temporary()
    if os.access(memory, os.W_OK) and free.f_bavail * free.f_frsize > _ROOM:
        return memory
    return _temporary()


def usable_root(root: Path) -> Path:
    """Return a directory as an absolute path if workspaces can be made in it.

    Args:
        root: Directory for workspaces.

    Raises:
        UsageError: Nothing can be made there: it is not a directory, not writable, or `/proc`.
        HarnessError: The disk is full.
    """
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


def _temporary() -> Path:
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        raise UsageError(
            f"{error.strerror}; set TMPDIR to a directory that can be written to, "
            "or give one (--root)"
        ) from None
