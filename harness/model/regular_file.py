"""Files that are read as somebody has left them: whatever stands there, there is no waiting.

A named pipe in the place of a file would be waited for until somebody writes into it, a device
might never end, and what is read whole has to fit into memory.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from harness.model.errors import UsageError

if TYPE_CHECKING:
    from io import BufferedReader
    from pathlib import Path

MOST_BYTES = 1 << 30
"""The longest file that is read whole."""

_SHOWN_CHARS = 200
"""How many characters of a path a message shows, so that it gets to its point."""


def read_regular_file(path: Path, what: str) -> bytes:
    """Read a file whole.

    Args:
        path: The file, or a link to it.
        what: What it should be, for the message.

    Raises:
        UsageError: There is none, it cannot be read, or it is something else than a file.
    """
    wrong = f"no {what} at {shown_path(path)}"
    try:
        # Without waiting: else a pipe is opened only when somebody opens its other end.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        raise UsageError(f"{wrong}: {error.strerror}") from error
    except ValueError as error:  # a path cannot have NUL characters, or lone surrogates
        raise UsageError(f"{wrong}: {error}") from error
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise UsageError(f"{wrong}: it is {kind(found.st_mode)}, not a file")
        if found.st_size > MOST_BYTES:
            raise UsageError(
                f"{wrong}: it has {found.st_size:,} bytes; at most {MOST_BYTES:,} are read"
            )
        with open(fd, "rb", closefd=False) as file:
            return file.read(MOST_BYTES)
    except OSError as error:
        raise UsageError(f"{wrong}: {error.strerror}") from error
    finally:
        os.close(fd)


def open_regular(path: str) -> BufferedReader:
    """Open a file of ours that a worker may have replaced.

    Args:
        path: Where it is; a link is not followed.

    Raises:
        OSError: It is not there, or something else is.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a file any more", path)
    return open(fd, "rb")  # noqa: PTH123 - a descriptor


def kind(mode: int) -> str:
    """Say in words what stands at a path, by its mode."""
    return {
        stat.S_IFDIR: "a directory",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFREG: "a file",
        stat.S_IFLNK: "a link",
    }.get(stat.S_IFMT(mode), "of an unknown kind")


def shown_path(path: Path | str) -> str:
    """Return a path as a message shows it: of a long one the beginning and the end."""
    text = str(path)
    if len(text) <= _SHOWN_CHARS:
        return text
    half = _SHOWN_CHARS // 2
    return f"{text[:half]}…({len(text):,} characters)…{text[-half:]}"
