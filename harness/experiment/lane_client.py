"""The owner's side of a lane."""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar, cast

import multiprocess

from harness.experiment.lane import LaneServer, serve
from harness.experiment.lost import clear_up_after_the_dead
from harness.images.root import usable_root
from harness.model.errors import DeadlineError, HarnessError, ProcessLostError, UsageError
from harness.processes.fate import LOOK_S, ended, stopped
from harness.processes.pickling import portable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from harness.experiment.rig import Rig

P = ParamSpec("P")
R = TypeVar("R")

_CALL_S = 300.0
_STOP_S = 10.0

_NO_MAIN_GUARD = 77
"""Exit code of a lane that found that the program's main module starts lanes when imported."""


class LaneClient:
    """A lane, started here.

    A request names a method of `LaneServer`, so that arguments and reply have its types::

        lane.call(LaneServer.prepare, scenario)

    Args:
        root: Directory for workspaces; see `harness.images.root.default_root`.
        cpu: The core to stay on. A fork and its parent that share one are several times faster
            than on two, because nothing has to be moved between caches. None leaves it open.
        seed: The seed of what it will run: the hash seed of its workers comes from it.

    Raises:
        UsageError: No workspace can be made there.
        SystemExit: This process is a lane itself, and is still importing the main module of the
            program, which therefore has no main guard; its owner says so (`receive`).
    """

    def __init__(self, root: Path, cpu: int | None = None, seed: int = 0) -> None:
        self._root = root = usable_root(root)
        context = multiprocess.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, root, cpu, seed), name="lane")
        try:
            with _interrupts_held():
                self._process.start()
        except RuntimeError:
            if multiprocess.current_process().name != "lane":
                raise
            raise SystemExit(_NO_MAIN_GUARD) from None
        theirs.close()

    @property
    def pid(self) -> int:
        """Pid of the lane's process."""
        return cast("int", self._process.pid)

    @property
    def stands_still(self) -> bool:
        """Whether somebody has stopped the lane's process; `receive` says by which signal."""
        return bool(stopped(self.pid))

    def send(
        self,
        method: Callable[Concatenate[LaneServer, P], object],
        *arguments: P.args,
        **_named: P.kwargs,
    ) -> None:
        """Send a request without waiting for the reply; `receive` says if the lane is gone.

        Args:
            method: A method of `LaneServer`.
            *arguments: Its arguments.
        """
        with suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send_bytes(portable((method.__name__, arguments)))

    def receive(self, deadline_s: float = _CALL_S) -> object:
        """Wait for the reply to the oldest request that has none yet.

        Raises:
            HarnessError: What the lane answered, or that it ended by itself.
            ProcessLostError: A signal ended the lane, or stopped it; it is gone now.
            UsageError: The main module of this program uses the harness when it is imported.
            DeadlineError: No reply in time.
        """
        end = time.monotonic() + deadline_s
        while not self.connection.poll(max(0.0, min(LOOK_S, end - time.monotonic()))):
            if self.stands_still:
                raise self._gone()
            if time.monotonic() >= end:
                raise DeadlineError("a reply of a lane", deadline_s)
        try:
            good, value = self.connection.recv()
        except (EOFError, OSError):
            raise self._gone() from None
        if not good:
            raise cast("HarnessError", value)
        return value

    def _gone(self) -> HarnessError:
        if fate := stopped(self.pid):
            self._kill()
            return ProcessLostError("the lane", fate)
        self._process.join(_STOP_S)
        code = self._process.exitcode
        if code == _NO_MAIN_GUARD:
            return UsageError(
                'put the code that uses the harness below `if __name__ == "__main__":`; the '
                "processes that it starts import the main file of this program again"
            )
        if code is None or code < 0:
            self._kill()
            return ProcessLostError("the lane", ended(code))
        return HarnessError(f"a lane {ended(code)}")

    def call(
        self,
        method: Callable[Concatenate[LaneServer, P], R],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> R:
        """Send a request and wait for its reply.

        Args:
            method: A method of `LaneServer`.
            *arguments: Its arguments.
            **named: None: arguments go by position.
        """
        self.send(method, *arguments, **named)
        return cast("R", self.receive())

    def call_rig(
        self, verb: Callable[Concatenate[Rig, P], R], *arguments: P.args, **_named: P.kwargs
    ) -> R:
        """Call a verb of the rig that is open in the lane.

        Args:
            verb: A method of `Rig`.
            *arguments: Its arguments.
        """
        return cast("R", self.call(LaneServer.verb, verb.__name__, arguments))

    def stop(self) -> None:
        """End the lane and everything below it, whatever it is doing."""
        self.connection.close()
        self._process.terminate()
        if self.stands_still:
            os.kill(self.pid, signal.SIGCONT)
        self._process.join(_STOP_S)
        if self._process.is_alive():
            self._kill()
        with suppress(ValueError):  # it is in the middle of a system call that cannot be ended
            self._process.close()

    def _kill(self) -> None:
        """See that the process is gone, and everything that it leaves."""
        self._process.kill()
        self._process.join(_STOP_S)
        clear_up_after_the_dead(self._root)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold SIGINT back here and in what is started.

    A terminal sends it to all, and a lane that has not yet said that it ignores it would die of it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
