"""Places of files in the worker's own directories, whatever stands there.

Somebody may have put a directory, a link, a pipe, a socket or a device where a file of ours is to
be, or something else where a directory is. It is never opened, since that may block for ever or
lead elsewhere; a link is never followed. It counts as nothing, and where a file or a directory is
to be made, it is removed.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def is_file(path: Path) -> bool:
    """Tell whether a file stands at a path; a link to one is none.

    Args:
        path: The path.
    """
    return stat.S_ISREG(_mode(path))


def is_directory(path: Path) -> bool:
    """Tell whether a directory stands at a path; a link to one is none.

    Args:
        path: The path.
    """
    return stat.S_ISDIR(_mode(path))


def make_way(path: Path) -> None:
    """Remove what stands in the place of a file and is none.

    Args:
        path: Where a file is to be.
    """
    if not is_file(path):
        remove(path)


def remove(path: Path) -> None:
    """Remove what stands at a path, a tree as a whole; does nothing if there is nothing.

    Args:
        path: The path.
    """
    if is_directory(path):
        _remove_tree(path)
    else:
        path.unlink(missing_ok=True)


def make_directory(path: Path) -> None:
    """Make a directory of ours, if it is not there; what else stands in its place goes.

    Args:
        path: Where it is to be; its parents are made.
    """
    if not is_directory(path):
        remove(path)
        path.mkdir(parents=True, exist_ok=True)


def open_file(path: Path, flags: int) -> int:
    """Open a file of ours for writing; what else stands in its place goes.

    Args:
        path: Where it is, or is to be; its directory is made.
        flags: Flags besides those for writing.

    Returns:
        Its descriptor.
    """
    make_directory(path.parent)
    make_way(path)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o644)


def sync(path: Path) -> None:
    """Force a file or a directory to disk.

    Args:
        path: The path.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return 0


def _remove_tree(root: Path) -> None:
    # `shutil.rmtree` stops at a directory that may not be written to.
    root.chmod(stat.S_IRWXU)
    for path in sorted(root.iterdir()):
        remove(path)
    root.rmdir()
