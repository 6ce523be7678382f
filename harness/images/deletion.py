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

_OPEN = 16
"""How many directories are open at a time."""

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
    """A directory that is being emptied: its name in the one above, what is in it, how it is open.

    One far above is closed meanwhile, and known by its device and inode when it is opened again.
    """

    name: str
    below: list[str]
    fd: int
    identity: tuple[int, int] | None = None

    def close(self) -> None:
        """Close it, and remember which it is."""
        self.identity = _identity(self.fd)
        os.close(self.fd)


def _empty(root: str, *, change_modes: bool) -> None:
    """Delete what is in a directory.

    It is gone down and up by single names, so no path grows long and no link is followed. A few
    directories are open at a time; where the way up does not lead to where we came from, somebody
    has moved something.

    Raises:
        OSError: Something cannot be deleted, or was changed meanwhile (`_CHANGED`).
    """
    if change_modes:
        os.chmod(root, _OWNER_ALL)
    way = [_opened(root, "")]
    try:
        while way[-1].below or len(way) > 1:
            if way[-1].below:
                _go_down(way, change_modes=change_modes)
            else:
                _go_up(way, root)
    finally:
        for each in way:
            if each.identity is None:
                os.close(each.fd)


def _go_down(way: list[_Emptied], *, change_modes: bool) -> None:
    """Delete the next directory of those in the last one, or go into it if it is not empty."""
    here = way[-1]
    name = here.below.pop()
    if _is_gone(name, here.fd):
        return
    if change_modes:
        os.chmod(name, _OWNER_ALL, dir_fd=here.fd)
    way.append(_opened(name, name, here.fd))
    # It has been closed before, if this is not the first way that goes as deep.
    if len(way) > _OPEN and way[-_OPEN - 1].identity is None:
        way[-_OPEN - 1].close()


def _go_up(way: list[_Emptied], root: str) -> None:
    """Leave a directory that has been emptied, and delete it."""
    here, above = way[-1], way[-2]
    if above.identity is not None:
        above.fd = os.open("..", _DIRECTORY, dir_fd=here.fd)
        if _identity(above.fd) != above.identity:
            os.close(above.fd)
            raise OSError(errno.ESTALE, "moved while it was being deleted", root)
        above.identity = None
    os.close(way.pop().fd)
    os.rmdir(here.name, dir_fd=above.fd)


def _opened(path: str, name: str, above: int | None = None) -> _Emptied:
    """Open a directory and delete the files in it."""
    fd = os.open(path, _DIRECTORY, dir_fd=above)
    try:
        return _Emptied(name, _without_files(fd), fd)
    except BaseException:
        os.close(fd)
        raise


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
