"""The owner's side of the world: starts its process and calls it."""

from __future__ import annotations

import os
import socket
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol, cast

import multiprocess
from multiprocess.util import Finalize

from harness.model.errors import DeadlineError, HarnessError, ProcessLostError, UsageError
from harness.processes.fate import LOOK_S, ended, stopped
from harness.processes.pickling import portable
from harness.world.host import serve
from harness.world.messages import (
    SOCKET_NAME,
    CloseServices,
    Done,
    Failed,
    Offer,
    Open,
    Shutdown,
    Snapshot,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from harness.model.workload import Command, Workload
    from harness.world.messages import Call, Pipe, Transport
    from harness.world.service import Service

MAX_SOCKET_PATH_BYTES: Final = 107
"""Longest path of a Unix socket: ``sun_path`` has 108 bytes with its final zero (unix(7))."""


class _Process(Protocol):
    """What is used of `multiprocess.process.BaseProcess`."""

    @property
    def pid(self) -> int: ...
    @property
    def exitcode(self) -> int | None: ...
    def start(self) -> None: ...
    def join(self, timeout: float) -> None: ...
    def kill(self) -> None: ...


class World:
    """A world process of one's own; made by `start`, ended by `stop` or as a context manager.

    Calls are synchronous, one at a time, each with a deadline. A call that misses it ends the world
    for good. The process is killed when the thread that started it ends.

    Args:
        process: The running process.
        pipe: The owner's end of the control pipe.
        deadline_s: Longest wait for one call, in seconds.
    """

    def __init__(self, process: _Process, pipe: Pipe, deadline_s: float) -> None:
        self._process = process
        self._pipe = pipe
        self._deadline_s = deadline_s
        self._ended = False
        self._lost: ProcessLostError | None = None
        # An owner that exits without `stop` closes the pipe, which ends the process. It has to
        # happen before multiprocess waits for its children at exit.
        self._release = Finalize(self, pipe.close, exitpriority=10)

    @classmethod
    def start(cls, deadline_s: float = 20.0) -> World:
        """Start a world process.

        Args:
            deadline_s: Longest wait for its start and for each later call, in seconds.

        Returns:
            The world, with no services open.

        Raises:
            DeadlineError: The process did not come up in time.
            HarnessError: The process could not be started, or ended instead.
        """
        context = multiprocess.get_context("spawn")
        ends = cast("tuple[Pipe, Pipe]", context.Pipe(duplex=True))
        ours, theirs = ends
        _bound(ours, deadline_s)
        process = cast(
            "_Process",
            context.Process(target=serve, args=(theirs, os.getpid()), name="world", daemon=False),
        )
        try:
            process.start()
        except OSError as error:
            ours.close()
            raise HarnessError(f"cannot start the world's process: {error}") from error
        finally:
            theirs.close()
        world = cls(process, ours, deadline_s)
        world._answer("the world to start")
        return world

    @property
    def pid(self) -> int:
        """Process id of the world."""
        return self._process.pid

    def open(
        self,
        world_dir: Path,
        services: tuple[Callable[[], Service], ...],
        workload: Workload,
        transport: Transport = "unix",
    ) -> str:
        """Open services on a directory, which may be new or a copy of an earlier one.

        Args:
            world_dir: The workspace's ``world/``.
            services: Makers of the services.
            workload: What the experiment asks of the worker.
            transport: ``"unix"`` for a socket in the directory, ``"tcp"`` for a port on loopback.

        Returns:
            The endpoint: ``unix:PATH`` or ``http://127.0.0.1:PORT``.

        Raises:
            UsageError: The path of the socket is too long, or the workload contradicts itself.
            HarnessError: The services cannot be opened.
        """
        path = world_dir.absolute()
        length = len(os.fsencode(path / SOCKET_NAME))
        if transport == "unix" and length > MAX_SOCKET_PATH_BYTES:
            raise UsageError(
                f"the world's socket {path / SOCKET_NAME} has a path of {length} bytes, and a Unix"
                f" socket takes {MAX_SOCKET_PATH_BYTES}; use a shorter directory or transport 'tcp'"
            )
        return self._call(Open(path, services, workload, transport))

    def offer(self, command: Command) -> None:
        """Offer one more command; when this returns, it is on its way to the open streams.

        Args:
            command: What to do.

        Raises:
            UsageError: Another command has this id.
            HarnessError: No services are open, or the offer failed.
        """
        self._call(Offer(command))

    def snapshot(self, destination: Path) -> None:
        """Copy the world's directory at a moment between two changes of it.

        Args:
            destination: Where to; it must not exist, its parent must.

        Raises:
            HarnessError: No services are open, or the copy failed.
        """
        self._call(Snapshot(destination.absolute()))

    def close_services(self) -> None:
        """Close the services; the directory stays.

        Raises:
            HarnessError: No services are open, or the world itself failed while it was.
        """
        self._call(CloseServices())

    def check(self) -> None:
        """See that the process is there, and does not stand still.

        Raises:
            ProcessLostError: It has ended, or was stopped, though nobody here had seen to it.
        """
        if self._lost is None and not self._ended:
            if fate := stopped(self._process.pid):
                self._died(fate)
            elif self._process.exitcode is not None:
                self._died()
        if self._lost is not None:
            raise self._lost

    def stop(self) -> None:
        """Close what is open and end the process; does nothing the second time.

        Raises:
            HarnessError: The world itself failed, or its process had ended before.
        """
        if self._ended:
            return
        try:
            self._call(Shutdown())
        finally:
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.stop()
        else:
            with suppress(HarnessError):  # The error on its way out says more.
                self.stop()

    def _call(self, call: Call) -> str:
        if self._ended:
            raise self._lost or HarnessError("the world is stopped")
        what = f"the world to answer {type(call).__name__}"
        try:
            self._pipe.send_bytes(portable(call))
        except BlockingIOError:
            self._kill()
            raise DeadlineError(what, self._deadline_s) from None
        except OSError:
            raise self._died() from None
        except Exception as error:
            # Nothing was sent: the call does not pickle.
            raise HarnessError(
                f"{type(call).__name__} cannot be handed to the world:"
                f" {type(error).__name__}: {error}"
            ) from error
        return self._answer(what)

    def _answer(self, what: str) -> str:
        try:
            answer = self._pipe.recv() if self._answered() else None
        except BlockingIOError:
            answer = None
        except (EOFError, OSError):
            raise self._died() from None
        match answer:
            case Done(value):
                return value
            case Failed(message, usage):
                raise UsageError(message) if usage else HarnessError(message)
            case _:
                # A late answer would be taken for that of the next call.
                self._kill()
                raise DeadlineError(what, self._deadline_s)

    def _answered(self) -> bool:
        """Wait for an answer, or for the end of the pipe; look meanwhile if the world is stopped.

        Raises:
            ProcessLostError: It is.
        """
        end = time.monotonic() + self._deadline_s
        while not self._pipe.poll(max(0.0, min(LOOK_S, end - time.monotonic()))):
            if fate := stopped(self._process.pid):
                raise self._died(fate)
            if time.monotonic() >= end:
                return False
        return True

    def _died(self, fate: str = "") -> ProcessLostError:
        if fate:
            self._kill()
        else:
            self._end()
        self._lost = ProcessLostError("the world", fate or ended(self._process.exitcode))
        return self._lost

    def _end(self) -> None:
        """Close the pipe and see the process end, by force if it does not by itself."""
        if self._ended:
            return
        self._ended = True
        self._release()
        self._process.join(self._deadline_s)
        if self._process.exitcode is None:
            self._kill()

    def _kill(self) -> None:
        self._ended = True
        self._release()
        self._process.kill()
        self._process.join(self._deadline_s)


def _bound(pipe: Pipe, deadline_s: float) -> None:
    """Bound what a send or a receive may block in the middle of a message (socket(7))."""
    seconds = int(deadline_s)
    limit = struct.pack("@ll", seconds, max(1, int((deadline_s - seconds) * 1_000_000)))
    with socket.socket(fileno=os.dup(pipe.fileno())) as end:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
