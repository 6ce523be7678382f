"""The mark of a family: whose a process is, whatever it has done since it was started.

A lane marks itself before it starts anything, and everything below it inherits the mark through
fork(2) and execve(2): a child that has a session of its own, has lost its parent, or was given an
empty environment still has it. So what a lane left that was killed together with everything that
could have cleared up is found by whoever comes next.

The mark is a drawn number in place of the soft limit of file locks (getrlimit(2), RLIMIT_LOCKS),
which no kernel since Linux 2.4 heeds, which anyone may set, and which proc(5) shows. A file that
the lane keeps locked has the number in its name. Once the lock is free the lane is gone, and only
then are processes with this number ended. Files and processes of other users are let alone.
"""

from __future__ import annotations

import fcntl
import os
import resource
import secrets
import select
import signal
import stat
import time
from contextlib import suppress
from pathlib import Path

_LOCKS = 10
"""RLIMIT_LOCKS, which Python has no name for; the number is the same on every architecture."""

_SHOWN_AS = b"Max file locks"
_BITS = 62
_MOST_S = 10.0
"""How long to go after processes that start others as fast as they are ended."""

_DEATH_S = 1.0


def default_register() -> Path:
    """Return where the marks of families are: the same for every run of a user on a machine."""
    memory = "/dev/shm"  # noqa: S108 - it is looked at whose the directory in it is
    parent = memory if os.access(memory, os.W_OK) else "/tmp"  # noqa: S108
    return Path(parent, f".crash-harness-{os.geteuid()}")


class FamilyMark:
    """The mark of this process and of all that it starts.

    Args:
        scratch: Directory in which the family's scratch directories are, for who finds the mark.
        register: Where the mark is put down.

    Attributes:
        number: The number; 0 where the system does not let a process be marked.
    """

    def __init__(self, scratch: Path, register: Path | None = None) -> None:
        self.number = 0
        self._path: Path | None = None
        number = 1 << _BITS | secrets.randbits(_BITS)
        with suppress(OSError, ValueError):
            hard = resource.getrlimit(_LOCKS)[1]
            self._path = _put_down(number, scratch, register or default_register())
            resource.setrlimit(_LOCKS, (number, hard))
            self.number = number

    def remove(self) -> None:
        """Take the mark out of the register: nothing of the family is left."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()


def end_marked(register: Path | None = None) -> tuple[Path, ...]:
    """End what families have left whose lane is gone.

    Only processes of this user, and only by a pidfd whose process was seen to have the mark.

    Args:
        register: Where the marks are put down.

    Returns:
        The directories in which they had their scratch directories.
    """
    directories = []
    register = register or default_register()
    if not _is_ours(register):
        return ()
    for path in register.iterdir():
        with suppress(OSError, ValueError):  # its lane lives, or it is gone, or not what it seems
            number = int(path.name, 16)
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                directories.append(Path(os.fsdecode(os.read(fd, os.fstat(fd).st_size))))
                if _end(number):
                    path.unlink()
            finally:
                os.close(fd)
    return tuple(directories)


def _is_ours(register: Path) -> bool:
    """Tell whether a directory is this user's alone: in a public place it may be another's."""
    try:
        status = register.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _put_down(number: int, scratch: Path, register: Path) -> Path:
    with suppress(FileExistsError):
        register.mkdir(0o700)
    if not _is_ours(register):
        raise PermissionError(register)
    path = register / f"{number:x}"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    # Never closed: the lock is to go when this process goes. Whoever takes it before finds no
    # process with the mark and removes the file.
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.write(fd, os.fsencode(scratch.absolute()))
    if not os.fstat(fd).st_nlink:
        os.close(fd)
        raise FileNotFoundError(path)
    return path


def _end(number: int) -> bool:
    """Kill every process with a mark; say whether none is left."""
    end = time.monotonic() + _MOST_S
    while pids := _marked(number):
        if time.monotonic() > end:
            return False
        dying = [fd for pid in pids if (fd := _kill(pid, number)) is not None]
        for fd in dying:
            waiting = select.poll()
            waiting.register(fd, select.POLLIN)
            waiting.poll(_DEATH_S * 1000)
            os.close(fd)
    return True


def _kill(pid: int, number: int) -> int | None:
    """Kill a process if it still has the mark, and return a pidfd that tells of its death."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:  # it has ended
        return None
    # What the pidfd stands for cannot be replaced by another process that gets the same pid.
    if _has_mark(pid, number):
        with suppress(OSError):
            signal.pidfd_send_signal(fd, signal.SIGKILL)
            return fd
    os.close(fd)
    return None


def _marked(number: int) -> list[int]:
    pids = (int(name) for name in os.listdir("/proc") if name.isdecimal())  # noqa: PTH208
    return [pid for pid in pids if pid != os.getpid() and _has_mark(pid, number)]


def _has_mark(pid: int, number: int) -> bool:
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.geteuid():  # noqa: PTH116
            return False
        with open(f"/proc/{pid}/limits", "rb") as file:  # noqa: PTH123
            lines = file.read().splitlines()
    except OSError:  # it has ended
        return False
    shown = next((line for line in lines if line.startswith(_SHOWN_AS)), b"")
    return shown.removeprefix(_SHOWN_AS).split()[:1] == [b"%d" % number]
