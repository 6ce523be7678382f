"""Child processes of this machine: found by their token, known by pid, start time and boot."""

from __future__ import annotations

import asyncio
import os
import re
import select
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from worker_under_test.adapters.places import is_directory, is_file, make_directory, sync
from worker_under_test.ports.processes import ProcessIdentity

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN_VARIABLE = "WORKER_PROCESS_TOKEN"  # noqa: S105 - the name of a variable
"""Carries the token in a child's environment."""

PLACE_VARIABLE = "WORKER_PROCESS_PLACE"
"""Carries the child's directory: tokens are unique in one worker, and a machine may have more."""

_PROC = Path("/proc")
_ZOMBIES = frozenset("ZX")
_AFTER_STATE = 19
"""Fields of /proc/PID/stat between the state and the start time (proc(5))."""

# Runs the program, then leaves its exit code under a name that is there only when it is whole.
# It says first that it has begun: before that its environment may not be there to be read. Nobody
# may be left to hear it.
_KEEPER = """
trap '' PIPE
echo 2>/dev/null
trap - PIPE
exec >/dev/null
"$@" >output 2>&1
code=$?
printf '%s' "$code" >exit.tmp && sync exit.tmp && mv exit.tmp exit && sync .
exit "$code"
"""

SHOWN_BYTES = 2000
_CODE = re.compile(rb"[0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5]")
_SHOWN_CODE = 8
DYING_S = 5.0
_TOKEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


class LocalProcesses:
    """A `Processes` on Linux.

    Each child has a directory, named by its token: it works there, and ``output`` and ``exit`` are
    left there. A keeper, a shell, runs the program and writes its exit code, so that the result is
    kept whoever is alive to see it. A child carries token and directory in its environment.

    Args:
        root: Directory of the children's directories.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def directory(self, token: str) -> Path:
        """Return the directory of a child.

        Args:
            token: Its token.

        Raises:
            ValueError: The token cannot name a directory.
        """
        if not _TOKEN.fullmatch(token):
            raise ValueError(f"not a token: {token!r}")
        return self._root / token

    def carriers(self, token: str) -> Iterator[ProcessIdentity]:
        """Give every living process of this user that a child is, or that came from it.

        Args:
            token: The child's token.
        """
        marks = {f"{name}={value}".encode() for name, value in self._marks(token)}
        for entry in sorted(_PROC.iterdir()):
            if not entry.name.isdecimal():
                continue
            try:
                if entry.stat().st_uid != os.getuid():
                    continue
                environment = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            identity = process_under(int(entry.name)) if marks.issubset(environment) else None
            if identity is not None:
                yield identity

    def _marks(self, token: str) -> tuple[tuple[str, str], ...]:
        place = self.directory(token).resolve()
        return (TOKEN_VARIABLE, token), (PLACE_VARIABLE, str(place))

    async def prepare(self, token: str) -> None:
        """Make the directory and force it to disk."""
        await asyncio.to_thread(self._prepare, self.directory(token))

    def _prepare(self, directory: Path) -> None:
        make_directory(directory)
        for each in (self._root, self._root.parent):
            sync(each)

    async def prepared(self, token: str) -> bool:
        """Look for the directory."""
        return await asyncio.to_thread(is_directory, self.directory(token))

    async def spawn(self, token: str, argv: list[str]) -> ProcessIdentity:
        """Start a child in a session of its own, so that it outlives the worker's terminal."""
        return await asyncio.to_thread(self._spawn, token, argv)

    def _spawn(self, token: str, argv: list[str]) -> ProcessIdentity:
        child = subprocess.Popen(  # noqa: S603 - what to run is the command's to say
            ["/bin/sh", "-c", _KEEPER, "keeper", *argv],
            cwd=self.directory(token),
            env={**os.environ, **dict(self._marks(token))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._children[child.pid] = child
        if child.stdout is not None:
            with child.stdout as begun:
                begun.read(1)
        identity = process_under(child.pid)
        # A child that has not been waited for keeps its entry, so it cannot be gone.
        return identity or ProcessIdentity(child.pid, 0, boot_id())

    async def find(self, token: str) -> ProcessIdentity | None:
        """Look through the processes that we may look at."""
        return await asyncio.to_thread(self._find, token)

    def _find(self, token: str) -> ProcessIdentity | None:
        keepers = [each for each in self.carriers(token) if self._is_keeper(each.pid)]
        # The oldest: until it runs the program, what a keeper forks looks like one.
        return min(keepers, key=lambda each: (each.start_time, each.pid), default=None)

    def _is_keeper(self, pid: int) -> bool:
        # The program carries the token as well, for its keeper's environment is its own.
        try:
            argv = (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return argv[1:4] == [b"-c", _KEEPER.encode(), b"keeper"]

    async def wait(self, identity: ProcessIdentity) -> None:
        """Wait for the end by a pidfd, taken before the identity is compared."""
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        with _held(identity) as held:
            # Not in a thread: a worker that is told to stop must not wait for the child.
            if held is not None:
                loop.add_reader(held, _set, ended)
                try:
                    await ended
                finally:
                    loop.remove_reader(held)
        child = self._children.pop(identity.pid, None)
        if child is not None:
            child.wait()

    async def result(self, token: str) -> int | None:
        """Read the exit file; one that is not what a keeper leaves says nothing (REC-16)."""
        data = await asyncio.to_thread(_end_of, self.directory(token) / "exit", _SHOWN_CODE)
        return int(data) if _CODE.fullmatch(data) else None

    async def output(self, token: str) -> str:
        """Read the end of the output."""
        data = await asyncio.to_thread(_end_of, self.directory(token) / "output", SHOWN_BYTES)
        return data.decode(errors="replace")

    async def end(self, identity: ProcessIdentity, token: str) -> bool:
        """Kill the child's session, if identity and token are both right."""
        return await asyncio.to_thread(self._end, identity, token)

    def _end(self, identity: ProcessIdentity, token: str) -> bool:
        with _held(identity) as held:
            if held is None or identity not in list(self.carriers(token)):
                return False
            # The keeper first: it starts nothing more, and notes no exit code of a killed program.
            _kill(held)
        # What was started while we looked was not seen, so whoever carries the token is looked for
        # until there is nobody. It is over when this returns; a killed process dies soon.
        deadline = time.monotonic() + DYING_S
        while (left := list(self.carriers(token))) and time.monotonic() < deadline:
            for each in left:
                with _held(each) as held:
                    if held is not None:
                        _kill(held)
        return True


def boot_id() -> str:
    """Return the kernel's name for this boot."""
    return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def is_alive(identity: ProcessIdentity) -> bool:
    """Tell whether a process is alive: it and no other under its pid (PRC-03).

    Args:
        identity: The process.
    """
    return process_under(identity.pid) == identity


def process_under(pid: int) -> ProcessIdentity | None:
    """Return the identity of the process that has a pid now; None if none is alive.

    Args:
        pid: The pid.
    """
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name is in parentheses and may hold anything. A zombie has ended.
    state, *rest = text.rpartition(")")[2].split()
    if state in _ZOMBIES:
        return None
    return ProcessIdentity(pid, int(rest[_AFTER_STATE - 1]), boot_id())


def _end_of(path: Path, most: int) -> bytes:
    """Read the last bytes of a file; nothing, if the child put something else in its place."""
    if not is_file(path):
        return b""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - most))
        return file.read(most)


def _set(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)


@contextmanager
def _held(identity: ProcessIdentity) -> Iterator[int | None]:
    """Hold a process by a pidfd; None if it is gone.

    It is compared while it is held, so what is waited for or signalled is what was compared.
    """
    try:
        held = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield held if is_alive(identity) else None
    finally:
        os.close(held)


def _kill(held: int) -> None:
    """Kill a process by its pidfd, and wait for its death."""
    signal.pidfd_send_signal(held, signal.SIGKILL)
    poll = select.poll()
    poll.register(held, select.POLLIN)
    poll.poll(DYING_S * 1000)
