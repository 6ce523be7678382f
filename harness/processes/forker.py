"""The supervisor's process: it forks incarnations, and does nothing else.

It is spawned, never forked, stays single-threaded, has imported and warmed the worker before the
first fork, and adopts every orphan that an incarnation leaves behind, so that none can hide.

Most of what a fork costs is page faults: every page that parent or child touches afterwards is
copied, and a reference count is enough to touch one. So little is loaded here and little runs here,
in the parent between two forks and in the child before its worker; `harness.processes.supervisor`,
the other side, does the thinking. SIGTERM and SIGCHLD stay blocked and are taken by `sigtimedwait`.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import time
import traceback
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import TYPE_CHECKING, cast

from harness import points
from harness.processes.channel import Channel
from harness.processes.exit_handlers import imports_alone_register, keep_finalizers_from_exit
from harness.processes.fresh_interpreter import become_interpreter
from harness.processes.heap import fill_holes
from harness.processes.life import live
from harness.processes.linux import (
    adopt_orphans,
    children,
    die_of,
    die_with_parent,
    end_children,
)
from harness.processes.loading import loaded

if TYPE_CHECKING:
    from typing import NoReturn, TypeAlias

    from harness.model.site import PlainSite, Site
    from harness.points.armed import PlainStop
    from harness.processes.fresh_interpreter import PlainInterpreter
    from harness.processes.linux import PlainLimits
    from harness.processes.loading import Main, Worker

    Request: TypeAlias = tuple[bool, str, tuple[object, ...]]

_EXIT_ERROR = 1
_THREAD_END_S = 2.0
_LOOK_S = 0.001
_WAITED_FOR = (signal.SIGCHLD, signal.SIGTERM)
_NOT_FOR_US = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
"""Signals that only a worker sends here, to all of its process group."""

_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


class _LeaveError(Exception):
    """The owner sent SIGTERM, or is gone."""


class Forker:
    """What the supervisor's process does; `Supervisor.call` names one of these methods.

    Children are signalled by pid: one that has not been reaped keeps its pid.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._pid = os.getpid()
        # Of a program as it is started: the worker's modules and its warm-up may change ours.
        self._environment = dict(os.environ)
        self._workers: dict[str, Worker] = {}
        self._pids: dict[int, int] = {}

    def serve(self) -> None:
        """Answer requests until the other side is gone.

        Raises:
            _LeaveError: The owner sent SIGTERM.
        """
        failed = ""
        while True:
            try:
                asked, name, arguments = cast("Request", self._channel.receive())
            except EOFError:
                return
            try:
                answer = getattr(self, name)(*arguments)
            except _LeaveError:
                raise
            except Exception:  # noqa: BLE001 - the other side is told, and decides
                failed = failed or f"in a supervisor, {name} failed:\n{traceback.format_exc()}"
            if asked:
                self._channel.send((False, failed) if failed else (True, answer))
                failed = ""

    def prepare(self, scenario: str, prepared: bytes, main: Main) -> str:
        """Load a worker, run its warm-up, and make this process ready to fork.

        Args:
            scenario: Name under which it is started.
            prepared: The worker, its warm-up, and the site of that, pickled.
            main: None for what ``pickle`` can load. Otherwise it takes ``dill`` and perhaps the
                main module of the program, and this says how a spawned process gets that.

        Returns:
            What is wrong with it, or nothing.
        """
        said = io.StringIO()
        signal.signal(signal.SIGTERM, _leave)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, *_NOT_FOR_US))
        try:
            with redirect_stdout(said), redirect_stderr(said):
                self._workers[scenario], warm, site = cast(
                    "tuple[Worker, Worker, Site]", loaded(prepared, main)
                )
                with imports_alone_register():
                    warm(site)
        except _LeaveError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the worker's
            return (
                f"the warm-up of {scenario!r} failed: {type(error).__name__}: {error}\n"
                f"{said.getvalue()}"
            )
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, *_NOT_FOR_US))
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if threads := _other_threads():
            return (
                f"the warm-up of {scenario!r} left threads behind: {', '.join(threads)}; "
                "a process with threads must not fork, so end them in the warm-up"
            )
        keep_finalizers_from_exit()
        # As the documentation of `gc.freeze` has it: off in the parent, on again in the child.
        gc.disable()
        gc.collect()
        gc.freeze()
        fill_holes()
        return ""

    def fork(  # noqa: PLR0917 - in plain values, as they come through the channel
        self,
        number: int,
        scenario: str,
        site: PlainSite,
        stops: list[PlainStop],
        stem: str,
        limits: PlainLimits,
        interpreter: PlainInterpreter | None,
        watched: bool,
    ) -> None:
        """Fork an incarnation.

        Args:
            number: Its number.
            scenario: Whose worker it is.
            site: What the worker is given.
            stops: Where it is to stop.
            stem: What the paths of its orders, trace and output begin with.
            limits: What the kernel is to refuse it.
            interpreter: What it takes for an interpreter of its own; None for a mere fork.
            watched: Whether it notes what it does outside of its workspace.
        """
        pid = os.fork()
        if pid == 0:
            try:
                self._channel.close()
                if interpreter is not None:
                    become_interpreter(
                        interpreter,
                        self._environment,
                        site,
                        stops,
                        stem,
                        self._pid,
                        limits,
                        watched,
                    )
                live(lambda: self._workers[scenario], site, stops, stem, self._pid, limits, watched)
            finally:
                os._exit(_EXIT_ERROR)
        self._pids[number] = pid

    def go_on(self, number: int, child: int) -> None:
        """Let a stopped incarnation go on.

        Args:
            number: Its number.
            child: Pid of the child of it that stopped it and itself, or 0.
        """
        os.kill(self._pids[number], signal.SIGCONT)
        # Only then: once the child goes on, the incarnation may be stopped again, and to stop what
        # still stands is no stop.
        if child:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGCONT)

    def wait(self, number: int, deadline_s: float) -> int | None:
        """Wait until an incarnation stops or dies.

        SIGCHLD is blocked in this process, so one that comes between the look and the wait stays
        pending and nothing is missed (sigtimedwait(2)).

        Returns:
            Its wait status, or None if neither happened in time.
        """
        pid = self._pids[number]
        end = time.monotonic() + deadline_s
        while True:
            found, status = os.waitpid(pid, os.WUNTRACED | os.WNOHANG)
            if found:
                if not os.WIFSTOPPED(status):
                    del self._pids[number]
                return status
            left = end - time.monotonic()
            if left <= 0:
                return None
            taken = signal.sigtimedwait(_WAITED_FOR, left)
            if taken is not None and taken.si_signo == signal.SIGTERM:
                raise _LeaveError

    def kill(self, number: int, child: int, deadline_s: float) -> tuple[int | None, bool]:
        """Send SIGKILL to an incarnation that has not been reaped, and wait for its death.

        Args:
            number: Its number.
            child: Pid of the child of it that stands at a point, or 0. With it dies everything that
                the incarnation has started.
            deadline_s: Longest wait for its wait status, in seconds.

        Returns:
            Its last wait status, or None if there was none in time; and whether this is what killed
            it, and the child.
        """
        leader = self._pids[number]
        ended, last = os.waitpid(leader, os.WNOHANG)
        if ended:
            del self._pids[number]
            return last, False
        others = {*self._pids.values()} - {leader}
        # An orphan does not say whose it was; beside other incarnations, it may be theirs.
        spared = others | (children(self._pid) - {child}) if child and others else others
        os.kill(leader, signal.SIGKILL)
        while (status := self.wait(number, deadline_s)) is not None and os.WIFSTOPPED(status):
            pass
        if not child or status is None:
            return status, True
        ends = end_children(spared)
        killed = os.WIFSIGNALED(ends.get(child, 0)) and os.WTERMSIG(ends[child]) == signal.SIGKILL
        return status, killed

    def kill_group(self, number: int) -> None:
        """Send SIGKILL to an incarnation that has not been reaped, and all in its process group."""
        with suppress(ProcessLookupError):  # it has not come to be the leader of one
            os.killpg(self._pids[number], signal.SIGKILL)

    def clear(self) -> None:
        """Kill and reap everything below this process."""
        end_children()
        self._pids.clear()


def _other_threads() -> list[str]:
    """Name the threads beside the one that runs this, whoever started them (proc(5)).

    A thread that was joined may need a moment more to be gone, and nothing tells when it is.
    """
    end = time.monotonic() + _THREAD_END_S
    while (tasks := _other_tasks()) and time.monotonic() < end:
        time.sleep(_LOOK_S)
    threading = sys.modules.get("threading")
    named = {t.native_id: t.name for t in threading.enumerate()} if threading else {}
    return [named.get(task, f"thread {task}") for task in tasks]


def _other_tasks() -> list[int]:
    tasks = [int(task) for task in os.listdir("/proc/self/task")]  # noqa: PTH208 - texts will do
    return [task for task in tasks if task != os.getpid()]


def serve(fd: int, owner: int) -> NoReturn:
    """Serve as a supervisor's process until its owner closes the channel, sends SIGTERM, or dies.

    Args:
        fd: This side's end of the channel.
        owner: Pid of the process that started this one.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, (*_WAITED_FOR, *_NOT_FOR_US))
    _handle_signals_as_python_does()
    die_with_parent(owner, signal.SIGTERM)
    adopt_orphans()
    os.environ[points.SWITCH] = "1"
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What was printed before a strike is evidence; a buffer would die with the incarnation.
        sys.stdout.reconfigure(line_buffering=True)
    pid = os.getpid()
    forker = Forker(Channel(fd))
    told_to_leave = False
    try:
        forker.serve()
    except _LeaveError:
        told_to_leave = True
    finally:
        if os.getpid() == pid:  # no child comes here; if one did, it would end its siblings
            forker.clear()
        if told_to_leave:
            die_of(signal.SIGTERM)
        os._exit(0)


def _handle_signals_as_python_does() -> None:
    """Undo what the owner ignores, or its own parent: workers are to begin without it."""
    for number in signal.valid_signals():
        if number not in _IGNORED_BY_PYTHON and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(_number: int, _frame: object) -> None:
    raise _LeaveError
