"""Directory trees that a worker made: copied with all that a program can see of them, and deleted.

Whatever a worker leaves is taken as it is: modes, times, owners, extended attributes, holes, second
names of a file, links, pipes, sockets. What cannot be kept in a copy is the number of an inode and
the time of its last change. Nothing here calls itself, so a tree may be as deep as it likes.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from harness.images.deletion import remove_tree
from harness.model.bounds import BLOCK_BYTES
from harness.model.errors import HarnessError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

MAX_PATH_BYTES = 3_500
"""A longer path is not followed: the kernel takes 4,096 bytes, and what copies a copy adds some."""

_AT_ONCE = 1 << 20
_SHOWN = 100
_OWNER_ALL = stat.S_IRWXU
_AS_IT_IS = nullcontext()


class UnimageableError(HarnessError):
    """The worker has made something of which no image can be taken."""


class TooLargeError(UnimageableError):
    """The files of a tree take more room than they may."""


def copy_tree(
    source: Path | str,
    destination: Path | str,
    *,
    relative_links: bool = False,
    most_bytes: int | None = None,
) -> int:
    """Copy a directory tree with all that a program can see of it.

    Entries are made in the reverse order of the listing, which gives the same listing on file
    systems that list the newest first (tmpfs), and makes no difference on the others.

    Args:
        source: Directory to copy; nothing changes in it meanwhile.
        destination: Directory to create.
        relative_links: Whether an absolute link into the directory that holds `source` becomes a
            relative one, so that it leads to the same place in the copy.
        most_bytes: How much room the files may take on the disk; anything by default.

    Returns:
        How much room the files take on the disk, in bytes.

    Raises:
        UnimageableError: `source` is not a directory, or something below it is too long, cannot be
            read, or all of it is too large.
    """
    size = 0
    root, target = os.fspath(source), os.fspath(destination)
    home = os.path.dirname(root)
    linked: dict[tuple[int, int], str] = {}
    finished: list[tuple[str, str, os.stat_result]] = []
    waiting = [(root, target)]
    while waiting:
        directory, copy = waiting.pop()
        entries, status = _listed(directory)
        os.mkdir(copy, 0o700)
        finished.append((directory, copy, status))
        for name, entry in reversed(entries):
            path, made = f"{directory}/{name}", f"{copy}/{name}"
            if stat.S_ISDIR(entry.st_mode):
                _bounded(path)
                waiting.append((path, made))
                continue
            key = (entry.st_dev, entry.st_ino)
            if entry.st_nlink > 1 and key in linked:
                os.link(linked[key], made, follow_symlinks=False)
                continue
            if entry.st_nlink > 1:
                linked[key] = made
            size += entry.st_blocks * BLOCK_BYTES
            if most_bytes is not None and size > most_bytes:
                raise TooLargeError(f"{_shown(root)} takes more than {most_bytes:,} bytes")
            _copy_entry(path, made, entry, home if relative_links else "")
    # Last, as an entry that is made in a directory changes its times, and needs its mode.
    for directory, copy, status in reversed(finished):
        _copy_metadata(directory, copy, status)
    return size


def move_tree(source: Path | str, destination: Path | str) -> None:
    """Move a directory tree, by a copy of all that a program can see when another disk is needed.

    Args:
        source: Directory to move.
        destination: What it is to be; nothing is there.

    Raises:
        UnimageableError: As `copy_tree`.
        OSError: It can be neither moved nor copied; the disk is full, say.
    """
    try:
        os.rename(source, destination)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy_tree(source, destination)
        remove_tree(source)


def room_bytes(path: Path | str, most_bytes: int) -> int:
    """Return how much room the files of a tree take on the disk, in bytes, as far as can be seen.

    Args:
        path: Directory that may change meanwhile.
        most_bytes: When to stop counting.
    """
    size = 0
    seen: set[tuple[int, int]] = set()
    waiting = [os.fspath(path)]
    while waiting and size <= most_bytes:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    waiting.append(entry.path)
                    continue
                if status.st_nlink > 1:
                    if (status.st_dev, status.st_ino) in seen:
                        continue
                    seen.add((status.st_dev, status.st_ino))
                size += status.st_blocks * BLOCK_BYTES
    return size


def _listed(directory: str) -> tuple[list[tuple[str, os.stat_result]], os.stat_result]:
    """List a directory in its own order, if need be by changing its mode for the moment."""
    try:
        status = os.stat(directory, follow_symlinks=False)
        with readable(directory, status), os.scandir(directory) as entries:
            return [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries], status
    except NotADirectoryError:
        raise UnimageableError(f"{_shown(directory)} is not a directory any more") from None
    except FileNotFoundError:
        raise UnimageableError(f"{_shown(directory)} is not there any more") from None
    except OSError as error:
        raise UnimageableError(f"{_shown(directory)} cannot be listed: {error.strerror}") from None


@contextmanager
def _changed_mode(path: str, mode: int) -> Iterator[None]:
    os.chmod(path, mode | _OWNER_ALL)
    try:
        yield
    finally:
        os.chmod(path, mode)


def readable(path: str, status: os.stat_result) -> AbstractContextManager[None]:
    """Let the owner read something for the time of a ``with``, where that is in need of leave.

    Args:
        path: A file or a directory.
        status: Its own.
    """
    mode = stat.S_IMODE(status.st_mode)
    listed = stat.S_ISDIR(status.st_mode)
    needed = stat.S_IRUSR | (stat.S_IXUSR if listed else 0)
    if mode & needed == needed:
        return _AS_IT_IS
    # Root needs no leave, unless it was deprived of that.
    if os.access(path, os.R_OK | (os.X_OK if listed else 0), effective_ids=True):
        return _AS_IT_IS
    return _changed_mode(path, mode)


def _copy_entry(path: str, made: str, status: os.stat_result, home: str) -> None:
    mode = status.st_mode
    if stat.S_ISREG(mode):
        _copy_content(path, made, status)
    elif stat.S_ISLNK(mode):
        os.symlink(_link_text(path, home), made)
    else:
        # A pipe or socket is but a name once nobody has it open; a device needs privilege.
        try:
            os.mknod(made, stat.S_IMODE(mode) | stat.S_IFMT(mode), status.st_rdev)
        except OSError as error:
            raise UnimageableError(f"{_shown(path)} cannot be made: {error.strerror}") from None
    _copy_metadata(path, made, status)


def _copy_content(path: str, made: str, status: os.stat_result) -> None:
    try:
        with readable(path, status):
            source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise UnimageableError(f"{_shown(path)} cannot be read: {error.strerror}") from None
    try:
        target = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            if status.st_size <= _AT_ONCE and not has_holes(status):
                os.write(target, os.read(source, status.st_size + 1))
            else:
                for start, end in data_segments(source, status.st_size):
                    os.lseek(target, start, os.SEEK_SET)
                    _send(target, source, start, end)
                os.ftruncate(target, status.st_size)
        finally:
            os.close(target)
    finally:
        os.close(source)


def _send(target: int, source: int, start: int, end: int) -> None:
    while start < end:
        sent = os.sendfile(target, source, start, end - start)
        if not sent:
            return
        start += sent


def has_holes(status: os.stat_result) -> bool:
    """Tell whether a file may have holes: it takes less room than it is long."""
    return status.st_blocks * BLOCK_BYTES < status.st_size


def data_segments(fd: int, size: int) -> Iterator[tuple[int, int]]:
    """Give the parts of a file that are not holes (lseek(2), SEEK_DATA).

    Args:
        fd: The open file.
        size: Its length, in bytes.
    """
    position = 0
    while position < size:
        try:
            start = os.lseek(fd, position, os.SEEK_DATA)
        except OSError:  # nothing but a hole from here on
            return
        position = os.lseek(fd, start, os.SEEK_HOLE)
        yield start, min(position, size)


def _copy_metadata(path: str, made: str, status: os.stat_result) -> None:
    link = stat.S_ISLNK(status.st_mode)
    for name in _attributes(path):
        with suppress(OSError):  # one that only the system may set
            value = os.getxattr(path, name, follow_symlinks=False)
            os.setxattr(made, name, value, follow_symlinks=False)
    if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):
            os.chown(made, status.st_uid, status.st_gid, follow_symlinks=False)
    if not link:
        os.chmod(made, stat.S_IMODE(status.st_mode))
    os.utime(made, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)


def _attributes(path: str) -> list[str]:
    try:
        return os.listxattr(path, follow_symlinks=False)
    except OSError:  # the file system has none, or they are not ours to read
        return []


def _link_text(path: str, home: str) -> str:
    text = os.readlink(path)
    if home and (text == home or text.startswith(f"{home}/")):
        return os.path.relpath(text, os.path.dirname(path))
    return text


def _bounded(path: str) -> None:
    if len(os.fsencode(path)) > MAX_PATH_BYTES:
        raise UnimageableError(
            f"{_shown(path)} is longer than {MAX_PATH_BYTES:,} bytes; no image is made of it"
        )


def _shown(path: str) -> str:
    return repr(path if len(path) <= _SHOWN else f"{path[:60]}...{path[-30:]}")


def make_links_relative(directory: Path | str) -> None:
    """Let absolute links into the directory that holds this one lead to the same place once moved.

    Args:
        directory: The directory; nothing is done if it is not one.
    """
    waiting = [os.fspath(directory)]
    home = os.path.dirname(waiting[0])
    while waiting:
        below = waiting.pop()
        try:
            with readable(below, os.stat(below)), os.scandir(below) as entries:
                listing = list(entries)
        except OSError:
            continue
        for entry in listing:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif entry.is_symlink():
                _make_relative(entry.path, home)


def _make_relative(link: str, home: str) -> None:
    text = _link_text(link, home)
    if text != os.readlink(link):
        status = os.stat(link, follow_symlinks=False)
        os.unlink(link)
        os.symlink(text, link)
        os.utime(link, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)
