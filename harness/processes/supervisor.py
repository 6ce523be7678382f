"""The supervisor: the one process that forks incarnations, and the way to it.

The process (`harness.processes.forker`) imports the worker and forks; everything that takes thought
happens on this side. So no fork copies what judges and records need, and nothing that they do makes
the kernel unshare pages between the forking process and its children.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar, cast

from multiprocess import spawn

from harness.model.errors import DeadlineError, HarnessError, ProcessLostError
from harness.model.hash_seed import hash_seed_of_interpreter
from harness.processes.channel import Channel
from harness.processes.fate import LOOK_S, ended, stopped
from harness.processes.forker import Forker
from harness.processes.fresh_interpreter import interpreter_command
from harness.processes.linux import children, descendants, described
from harness.processes.pickling import plainly, portable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.model.site import Site
    from harness.points.armed import StopOrder
    from harness.processes.channel import Plain
    from harness.processes.fresh_interpreter import PlainInterpreter
    from harness.processes.linux import PlainLimits
    from harness.processes.loading import Main

P = ParamSpec("P")
R = TypeVar("R")

_ANSWER_S = 30.0
"""How long an answer may take that waits for nothing but this machine."""

_WARM_UP_S = 300.0
_STOP_S = 10.0

_MOST_LOOKS = 100
"""How often to look for survivors that are others each time."""

_AT_ONCE = 100
"""How many of them to look at before their list is read again."""


class WarmUpError(HarnessError):
    """A worker cannot be started: it cannot be loaded, or its warm-up failed."""


class Supervisor:
    """A process that forks incarnations, started here, and what lives below it.

    Args:
        surroundings: Environment variables that differ from those of this process; None unsets
            one.
    """

    def __init__(self, surroundings: Mapping[str, str | None]) -> None:
        self._options = _interpreter_options()
        self._path = [str(Path(entry).absolute()) for entry in sys.path]
        self._workers: dict[str, tuple[bytes, Main]] = {}
        ours, theirs = socket.socketpair()
        with theirs:
            # Not the way of `multiprocess`: what it loads would be copied by every fork.
            statement = (
                "from harness.processes.forker import serve; "
                f"serve({theirs.fileno()}, {os.getpid()})"
            )
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, our own program
                interpreter_command(self._options, self._path, statement),
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={
                    name: value
                    for name, value in {**os.environ, **surroundings}.items()
                    if value is not None
                },
            )
        self._channel = Channel(ours.detach())
        self._lost: ProcessLostError | None = None
        self._answered = select.poll()
        self._answered.register(self._channel.fd, select.POLLIN)

    def prepare(
        self,
        scenario: str,
        worker: Callable[[Site], None],
        warm_up: Callable[[Site], None],
        site: Site,
    ) -> None:
        """Load a scenario's worker there, and run its warm-up.

        Args:
            scenario: Name under which the worker is started.
            worker: One process life.
            warm_up: Run once, before the first fork.
            site: What the warm-up is given.

        Raises:
            WarmUpError: The warm-up failed, did not end, or left a thread behind.
            ProcessLostError: It ended the process.
        """
        prepared, main = _pickled((worker, warm_up, site))
        # Alone: an interpreter of its own is to import what the worker needs and no more.
        self._workers[scenario] = _pickled(worker)
        try:
            wrong = self.call(Forker.prepare, _WARM_UP_S, scenario, prepared, main)
        except DeadlineError:
            wrong = f"the warm-up of {scenario!r} did not end in {_WARM_UP_S:g} s"
        if wrong:
            raise WarmUpError(wrong)

    def fork(
        self,
        scenario: str,
        site: Site,
        stem: str,
        stops: Sequence[StopOrder],
        limits: PlainLimits,
        *,
        fresh: bool = False,
        watched: bool = False,
    ) -> None:
        """Have an incarnation forked; does not wait until that has happened.

        Args:
            scenario: Whose worker it is; it has been prepared.
            site: What the worker is given.
            stem: What the paths of its orders, trace and output begin with.
            stops: Where it is to stop.
            limits: What the kernel is to refuse it.
            fresh: Whether it gets an interpreter of its own.
            watched: Whether it notes what it does outside of its workspace.
        """
        orders = [stop.plain for stop in stops]
        own = self._interpreter(scenario, site) if fresh else None
        self._tell(
            Forker.fork,
            site.incarnation,
            scenario,
            site.plain,
            orders,
            stem,
            limits,
            own,
            watched,
        )

    def _interpreter(self, scenario: str, site: Site) -> PlainInterpreter:
        hash_seed = hash_seed_of_interpreter(site.seed, site.incarnation, os.environ)
        return self._options, self._path, hash_seed, *self._workers[scenario]

    def go_on(self, number: int, child: int) -> None:
        """Have a stopped incarnation go on; does not wait until that has happened."""
        self._tell(Forker.go_on, number, child)

    def wait(self, number: int, deadline_s: float) -> int | None:
        """Return the wait status of an incarnation that stops or dies in time, or None."""
        return self.call(Forker.wait, deadline_s + _ANSWER_S, number, deadline_s)

    def kill(self, number: int, child: int, deadline_s: float) -> tuple[int | None, bool]:
        """Kill an incarnation: see `Forker.kill`."""
        return self.call(Forker.kill, deadline_s + _ANSWER_S, number, child, deadline_s)

    def kill_group(self, number: int) -> None:
        """Have an incarnation killed with all in its group; `kill` says when that has happened."""
        self._tell(Forker.kill_group, number)

    @property
    def pid(self) -> int:
        """Pid of the process."""
        return self._process.pid

    @property
    def has_children(self) -> bool:
        """Whether anything lives below the process, or has died there and is not reaped."""
        return self._process.returncode is None and bool(children(self._process.pid))

    def has_more_than(self, most: int) -> bool:
        """Tell whether more than so many processes live below the process."""
        return len(descendants(self._process.pid, most + 1)) > most

    def survivors(self) -> tuple[str, ...]:
        """Return what lives below the process though every incarnation should be dead.

        A process that forks and ends, again and again, may be another by the time that it is
        looked at, and leaves thousands that have ended. So the newest are looked at first, for as
        long as others come up.
        """
        if not self.has_children:
            return ()
        seen: set[int] = set()
        for _ in range(_MOST_LOOKS):
            near = children(self._process.pid)
            newest = sorted(near - seen, reverse=True)[:_AT_ONCE]
            if not newest:
                return ()
            if found := described(newest):
                far = descendants(self._process.pid) - near if len(near) <= _AT_ONCE else ()
                return tuple(sorted([*found, *described(far)]))
            seen.update(newest)
        return ("processes that start one another and end at once",)

    def clear(self) -> None:
        """Kill and reap everything below the process.

        If it is lost, there is nobody to do that here: what it left is adopted by the lane.
        """
        if self.has_children:
            with suppress(ProcessLostError):
                self.call(Forker.clear, _ANSWER_S)

    def check(self) -> None:
        """See that the process is there, and does not stand still.

        Raises:
            ProcessLostError: It has ended, or was stopped, though the harness had not seen to it.
        """
        if self._lost or self._process.poll() is not None or stopped(self._process.pid):
            raise self._gone()

    def end(self) -> None:
        """End the process and everything below it, whatever it is doing."""
        self._channel.close()
        self._process.terminate()
        self._process.send_signal(signal.SIGCONT)  # it may have been stopped
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_STOP_S)

    def call(
        self,
        method: Callable[Concatenate[Forker, P], R],
        patience_s: float,
        *arguments: P.args,
        **_named: P.kwargs,
    ) -> R:
        """Have the process do something, and wait for its answer.

        Args:
            method: A method of `Forker`; its arguments and its answer are plain values.
            patience_s: Longest wait for the answer, in seconds.
            *arguments: Its arguments.

        Raises:
            HarnessError: What the process answered.
            ProcessLostError: It has ended, or was stopped.
            DeadlineError: No answer in time.
        """
        self._send(True, method.__name__, cast("tuple[Plain, ...]", arguments))
        end = time.monotonic() + patience_s
        while not self._answered.poll(1000 * max(0.0, min(LOOK_S, end - time.monotonic()))):
            if stopped(self._process.pid):
                raise self._gone()
            if time.monotonic() >= end:
                raise DeadlineError(f"a supervisor's answer to {method.__name__}", patience_s)
        try:
            good, value = cast("tuple[bool, object]", self._channel.receive())
        except (EOFError, OSError):
            raise self._gone() from None
        if not good:
            raise HarnessError(cast("str", value))
        return cast("R", value)

    def _tell(
        self,
        method: Callable[Concatenate[Forker, P], None],
        *arguments: P.args,
        **_named: P.kwargs,
    ) -> None:
        self._send(False, method.__name__, cast("tuple[Plain, ...]", arguments))

    def _send(self, asked: bool, name: str, arguments: tuple[Plain, ...]) -> None:
        try:
            self._channel.send((asked, name, arguments))
        except OSError:
            raise self._gone() from None

    def _gone(self) -> ProcessLostError:
        """Say what became of the process, and see that it is gone for good."""
        if self._lost is None:
            fate = stopped(self._process.pid)
            if not fate:
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(_STOP_S)
                fate = ended(self._process.returncode)
            self._lost = ProcessLostError("the supervisor", fate)
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_S)
        return self._lost


def _pickled(prepared: object) -> tuple[bytes, Main]:
    """Pickle something, and say what it takes to unpickle it: see `loading.loaded`."""
    plain = plainly(prepared)
    if plain is not None:
        return plain, None
    main = spawn.get_preparation_data("supervisor")
    del main["authkey"]  # not to be sent, and of no use to a process that opens no connection
    return portable(prepared), main


def _interpreter_options() -> list[str]:
    """Return the options that make another interpreter behave like this one."""
    options = [f"-W{option}" for option in sys.warnoptions]
    for name, value in sys._xoptions.items():
        options.append(f"-X{name}" if value is True else f"-X{name}={value}")
    return options + ["-O"] * sys.flags.optimize
