"""The file to which an armed process writes its hits, and to nothing else.

Never loaded in a process that is not to be armed, and without the module `fcntl`: each library that
is loaded makes every fork dearer. A program that closes all descriptors, as daemons do, may have a
file of its own under our number when the next point is hit: so each use begins with a look at what
the descriptor is.
"""

from __future__ import annotations

import os
from contextlib import suppress

_HIGH_FDS = (512, 256, 128, 64, 32)
"""Where a program that counts on low descriptors does not look; lower for lower limits."""

_TRIED = 32

_LOST = (
    "crash-harness: the trace of points cannot be written any more ({}), so no further point of"
    " this process is seen\n"
)


class TraceFile:
    """The trace of one armed process and the children that it forks.

    Args:
        path: Where it is; it is made.

    Raises:
        OSError: It cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._output = _identity(2)
        self._fd = self._opened(os.O_CREAT)
        self._is = _identity(self._fd)
        self._lost = False

    def is_ready(self) -> bool:
        """Make sure that the descriptor is the trace; open it again if it is not.

        Returns:
            Whether it is. If it cannot be, that is said in the output once.
        """
        if _identity(self._fd) == self._is:
            return True
        try:
            fd = self._opened()
        except OSError as error:
            return self._give_up(str(error))
        if _identity(fd) != self._is:
            os.close(fd)
            return self._give_up(f"{self._path} is another file now")
        self._fd = fd
        return True

    def write(self, line: bytes) -> bool:
        """Write a line at the end, and tell whether it is there; `is_ready` comes first."""
        try:
            written = os.write(self._fd, line)
        except OSError as error:
            return self._give_up(str(error))
        return written == len(line) or self._give_up("no room is left")

    def read_from(self, position: int) -> bytes:
        """Return what is there from a position on."""
        length = os.fstat(self._fd).st_size - position
        return os.pread(self._fd, length, position) if length > 0 else b""

    @property
    def end(self) -> int:
        """How long the file is, in bytes."""
        return os.fstat(self._fd).st_size

    def lock(self) -> None:
        """Wait for the other processes that write here; the kernel unlocks for one that dies."""
        self._lock_or_unlock(os.F_LOCK)

    def unlock(self) -> None:
        """Let the others write."""
        with suppress(OSError):  # what was closed meanwhile is not locked any more
            self._lock_or_unlock(os.F_ULOCK)

    def _lock_or_unlock(self, what: int) -> None:
        # From here to any end: all wait for each other, wherever the position has got to meanwhile.
        os.lseek(self._fd, 0, os.SEEK_SET)
        os.lockf(self._fd, what, 0)

    def _opened(self, flags: int = 0) -> int:
        fd = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | flags, 0o644)
        for high in _HIGH_FDS:
            found = next((n for n in range(high, high + _TRIED) if _identity(n) is None), fd)
            try:
                os.dup2(fd, found, inheritable=False)
            except OSError:  # the limit of open files is lower
                continue
            if found != fd:
                os.close(fd)
                return found
        return fd

    def _give_up(self, why: str) -> bool:
        if not self._lost and self._output is not None and _identity(2) == self._output:
            with suppress(OSError):
                os.write(2, _LOST.format(why).encode(errors="backslashreplace"))
        self._lost = True
        return False


def _identity(fd: int) -> tuple[int, int] | None:
    """Tell which file a descriptor is, or None if it is closed."""
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino
