"""Notes what a worker does outside of its workspace, in its own process.

Python tells of it by audit events (PEP 578, and the table of audit events in the library's
reference). A hook costs at every event and cannot be taken away, so it is set in control legs, and
where those have shown that there is something to note. What a program in another language does,
which the worker starts, is not seen.
"""

from __future__ import annotations

import os
import sys

from harness.processes.shared_memory import DIRECTORY

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PATHS = {
    "open": 1,
    "os.chmod": 1,
    "os.chown": 1,
    "os.link": 2,
    "os.mkdir": 1,
    "os.remove": 1,
    "os.rename": 2,
    "os.rmdir": 1,
    "os.symlink": 2,
    "os.truncate": 1,
    "os.utime": 1,
    "sqlite3.connect": 1,
}
"""By audit event: how many of its first arguments are paths."""

_NOWHERE = ("/dev/", "/proc/", "/sys/")
"""What is written there is not kept, but for shared memory."""

_KEPT_IN_MEMORY = f"{DIRECTORY}/"


def watch_outside(inside: str, notes: str) -> None:
    """Note from now on every path outside of a directory that is written to, and abstract sockets.

    Args:
        inside: The workspace.
        notes: File for the notes: one path a line, an abstract socket's name with ``@`` in front.
    """
    sys.addaudithook(_Watch(inside, notes).hook)


class _Watch:
    def __init__(self, inside: str, notes: str) -> None:
        self._inside = f"{os.path.realpath(inside)}/"
        self._fd = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        # A worker that closes every descriptor, as daemons do, may have another file there later.
        self._identity = _identity(self._fd)
        self._noted: set[str] = set()
        self._folder = self._real = ""

    def hook(self, event: str, arguments: tuple[object, ...]) -> None:
        try:
            if event in _PATHS:
                self._file_event(event, arguments)
            elif event == "socket.bind":
                self._bound(arguments[1])
            elif event == "mmap.__new__":
                self._mapped(arguments[0])
        except Exception:  # noqa: BLE001, S110 - the worker is not to notice
            pass

    def _file_event(self, event: str, arguments: tuple[object, ...]) -> None:
        paths = arguments[: _PATHS[event]]
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & _WRITES):
            return
        if event == "os.symlink":
            paths = paths[1:]  # the first is only text
        for path in paths:
            if isinstance(path, str | bytes | os.PathLike):
                self._look_at(os.fsdecode(path))
            # Otherwise it is a descriptor, whose file was seen when it was opened.

    def _bound(self, address: object) -> None:
        if isinstance(address, str | bytes) and address:
            name = os.fsdecode(address)
            if name.startswith("\0"):
                self._note(f"@{name[1:]}")
            else:
                self._look_at(name)

    def _mapped(self, fd: object) -> None:
        path = os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115 - as text
        if path.startswith(_KEPT_IN_MEMORY):
            self._look_at(path)

    def _look_at(self, path: str) -> None:
        if not path or path == ":memory:" or path.startswith("file:"):
            return
        if "/" not in path and path not in {".", ".."}:
            # The kernel's own word for where we are, which may be a thousand levels deep.
            self._note_if_outside(f"{os.getcwd().rstrip('/')}/{path}")  # noqa: PTH109 - as text
            return
        folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100 - as text
        if folder != self._folder:  # a worker that makes thousands of files makes them in few
            self._folder, self._real = folder, os.path.realpath(folder).rstrip("/")
        self._note_if_outside(f"{self._real}/{name}")

    def _note_if_outside(self, real: str) -> None:
        if real.startswith(self._inside) or real.endswith(".pyc") or "/__pycache__" in real:
            return
        if not real.startswith(_NOWHERE) or real.startswith(_KEPT_IN_MEMORY):
            self._note(real)

    def _note(self, what: str) -> None:
        if what not in self._noted and _identity(self._fd) == self._identity:
            self._noted.add(what)
            line = what.encode(errors="surrogateescape").replace(b"\n", b"?")
            os.write(self._fd, line + b"\n")


def _identity(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino
