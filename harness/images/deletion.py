"""Deletes directory trees that a worker has made, whatever it has made them into."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MAX_REFUSED = 1_000
"""How often a directory may be found filled again before its deletion is given up."""

_OWNER_ALL = stat.S_IRWXU
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHANGED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.ELOOP, errno.ESTALE})
"""What deleting meets when others go on in the same directories."""


def remove_tree(path: Path | str) -> None:
    """Delete a directory tree, however deep it is and whatever modes it has.

    Another process may be deleting the same, or still be writing.

    Args:
        path: Directory of our own; a link or a file in its place is deleted, and nothing is done if
            nothing is there.

    Raises:
        OSError: Something cannot be deleted, an immutable file say.
    """
    root = os.fspath(path)
    try:
        status = os.stat(root, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(root)
        return
    try:
        _remove(root, change_modes=False)
    except PermissionError:
        _remove(root, change_modes=True)


def _remove(root: str, *, change_modes: bool) -> None:
    refused = 0
    while True:
        try:
            _empty(root, change_modes=change_modes)
            os.rmdir(root)
        except FileNotFoundError:
            if not os.path.lexists(root):
                return
            refused += 1
        except OSError as error:
            refused += 1
            if error.errno not in _CHANGED or refused > MAX_REFUSED:
                raise
        else:
            return


@dataclass
class _Emptied:
    """A directory that is being emptied: its name in the one above, which it is, what is in it."""

    name: str
    identity: tuple[int, int]
    below: list[str]


def _empty(root: str, *, change_modes: bool) -> None:
    """Delete what is in a directory.

    One directory is open at a time, and it is gone down and up by single names, so no path grows
    long. Where the way up does not lead to where we came from, somebody has moved something.

    Raises:
        OSError: Something cannot be deleted, or was changed meanwhile (`_CHANGED`).
    """
    if change_modes:
        os.chmod(root, _OWNER_ALL)
    fd = os.open(root, _DIRECTORY)
    try:
        way = [_Emptied("", _identity(fd), _without_files(fd))]
        while True:
            if way[-1].below:
                name = way[-1].below.pop()
                if _is_gone(name, fd):
                    continue
                if change_modes:
                    os.chmod(name, _OWNER_ALL, dir_fd=fd)
                fd = _opened_instead(fd, name)
                way.append(_Emptied(name, _identity(fd), _without_files(fd)))
            elif len(way) == 1:
                return
            else:
                name = way.pop().name
                fd = _opened_instead(fd, "..")
                if _identity(fd) != way[-1].identity:
                    raise OSError(errno.ESTALE, "moved while it was being deleted", root)
                os.rmdir(name, dir_fd=fd)
    finally:
        os.close(fd)


def _is_gone(name: str, fd: int) -> bool:
    """Delete a directory in another if it is empty, and tell whether it is gone."""
    try:
        os.rmdir(name, dir_fd=fd)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise
        return False
    return True


def _opened_instead(fd: int, name: str) -> int:
    """Open a directory by its name in another, which is closed."""
    opened = os.open(name, _DIRECTORY, dir_fd=fd)
    os.close(fd)
    return opened


def _identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


def _without_files(fd: int) -> list[str]:
    """Delete the files of a directory, and return the names of the directories in it."""
    below = []
    with os.scandir(fd) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                below.append(entry.name)
            else:
                # Whoever made it may be at its end, and be deleting it as well.
                with suppress(FileNotFoundError):
                    os.unlink(entry.name, dir_fd=fd)
    return below
