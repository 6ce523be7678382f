"""The supervisor's process: it forks incarnations, and does nothing else.

It is spawned, never forked, stays single-threaded, has imported and warmed the worker before the
first fork, and adopts every orphan that an incarnation leaves behind, so that none can hide.

Most of what a fork costs is page faults: every page that parent or child touches afterwards is
copied, and a reference count is enough to touch one. So little is loaded here and little runs here,
in the parent between two forks and in the child before its worker; `harness.processes.supervisor`,
the other side, does the thinking. SIGTERM and SIGCHLD stay blocked and are taken by `sigtimedwait`.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import pickle
import signal
import sys
import time
import traceback
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import TYPE_CHECKING, ParamSpec, cast
from zlib import crc32

from harness import points
from harness.model.site import Site
from harness.points.armed import Armed, StopOrder
from harness.processes.channel import Channel
from harness.processes.heap import fill_holes
from harness.processes.linux import adopt_orphans, begin_life, children, die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn, TypeAlias

    from harness.model.site import PlainSite
    from harness.points.armed import PlainStop

    Main: TypeAlias = dict[str, object] | None
    Worker: TypeAlias = Callable[[Site], None]
    Request: TypeAlias = tuple[bool, str, tuple[object, ...]]

P = ParamSpec("P")

_EXIT_ERROR = 1
_THREAD_END_S = 2.0
_LOOK_S = 0.001
_WAITED_FOR = (signal.SIGCHLD, signal.SIGTERM)
_DEFAULT = (
    signal.SIGCHLD,
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class _LeaveError(Exception):
    """The owner sent SIGTERM, or is gone."""


class Forker:
    """What the supervisor's process does; `Supervisor.call` names one of these methods.

    Children are signalled by pid: one that has not been reaped keeps its pid.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._pid = os.getpid()
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
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
        try:
            with redirect_stdout(said), redirect_stderr(said):
                self._workers[scenario], warm, site = _loaded(prepared, main)
                warm(site)
        except _LeaveError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the worker's
            return (
                f"the warm-up of {scenario!r} failed: {type(error).__name__}: {error}\n"
                f"{said.getvalue()}"
            )
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if threads := _other_threads():
            return (
                f"the warm-up of the worker left threads behind: {', '.join(threads)}; "
                "a process with threads must not fork"
            )
        # As the documentation of `gc.freeze` has it: off in the parent, on again in the child.
        gc.disable()
        gc.collect()
        gc.freeze()
        fill_holes()
        return ""

    def fork(
        self, number: int, scenario: str, site: PlainSite, stops: list[PlainStop], stem: str
    ) -> None:
        """Fork an incarnation.

        Args:
            number: Its number.
            scenario: Whose worker it is.
            site: What the worker is given.
            stops: Where it is to stop.
            stem: What the paths of its orders, trace and output begin with.
        """
        pid = os.fork()
        if pid == 0:
            self._channel.close()
            _live(self._workers[scenario], site, stops, stem, self._pid)
        self._pids[number] = pid

    def go_on(self, number: int) -> None:
        """Let a stopped incarnation go on."""
        os.kill(self._pids[number], signal.SIGCONT)

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
                return status
            left = end - time.monotonic()
            if left <= 0:
                return None
            taken = signal.sigtimedwait(_WAITED_FOR, left)
            if taken is not None and taken.si_signo == signal.SIGTERM:
                raise _LeaveError

    def kill(self, number: int, deadline_s: float) -> int | None:
        """Send SIGKILL to an incarnation that has not been reaped, and wait for its death.

        Returns:
            Its last wait status, or None if there was none in time.
        """
        os.kill(self._pids[number], signal.SIGKILL)
        while (status := self.wait(number, deadline_s)) is not None and os.WIFSTOPPED(status):
            pass
        return status

    def clear(self) -> None:
        """Kill and reap everything below this process.

        An orphan's own children come up as orphans of ours, so it takes another look.
        """
        while found := children(self._pid):
            for pid in found:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _loaded(prepared: bytes, main: Main) -> tuple[Worker, Worker, Site]:
    if main is None:
        loaded = pickle.loads(prepared)  # noqa: S301 - our owner's
    else:
        from multiprocess import spawn  # noqa: PLC0415 - heavy, and seldom needed
        from multiprocess.reduction import ForkingPickler  # noqa: PLC0415

        spawn.prepare(main)
        loaded = ForkingPickler.loads(prepared)
    return cast("tuple[Worker, Worker, Site]", loaded)


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


def _live(
    worker: Worker, site: PlainSite, stops: list[PlainStop], stem: str, parent: int
) -> NoReturn:
    """Run the worker as an incarnation, and end with it: nothing returns into the supervisor."""
    code = _EXIT_ERROR
    try:
        begin_life(parent)
        code = _exit_code(_run, worker, site, stops, stem)
        code = _ended_as_python_ends(code)
    finally:
        os._exit(code)


def _run(worker: Worker, site: PlainSite, stops: list[PlainStop], stem: str) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    output = os.open(f"{stem}.output.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    # Beside the worker's directory: see `harness.images.workspace.Workspace`.
    os.chdir(f"{site[0].rpartition('/')[0]}/cwd")
    _seed(site)
    orders = [StopOrder(*stop) for stop in stops]
    points.arm(Armed(f"{stem}.trace.ndjson", orders, f"{stem}.orders.json").hit)
    gc.enable()
    worker(Site.from_plain(site))


def _seed(site: PlainSite) -> None:
    """Seed generators anew: one that was seeded at import would draw the same in every life."""
    *_, identity, incarnation, seed, _ = site
    text = f"{seed}/{identity}/{incarnation}"
    if (random := sys.modules.get("random")) is not None:
        random.seed(text)
    if (numpy_random := sys.modules.get("numpy.random")) is not None:
        numpy_random.seed(crc32(text.encode()))


def _exit_code(call: Callable[P, None], *arguments: P.args, **named: P.kwargs) -> int:
    """Call something, and return the exit code that Python would give for how it ended.

    What Python would print is printed, if there is still something to print to.
    """
    try:
        call(*arguments, **named)
    except SystemExit as end:
        if end.code is None:
            return 0
        if isinstance(end.code, int):
            # What C makes of it (exit(3)); one that is no C long counts as -1.
            return end.code & 0xFF if -(1 << 63) <= end.code < 1 << 63 else 0xFF
        with suppress(BaseException):
            print(end.code, file=sys.stderr)  # noqa: T201 - as Python does
        return _EXIT_ERROR
    except BaseException:  # noqa: BLE001 - whatever it is, it ends here and is shown in the output
        with suppress(BaseException):
            traceback.print_exc()
        return _EXIT_ERROR
    return 0


def _ended_as_python_ends(code: int) -> int:
    """Wait for threads that are not daemons, run what is to run at exit, and flush the output.

    What fails here changes nothing any more: the output may be closed, or gone.
    """
    threading = sys.modules.get("threading")
    if threading is not None:
        code = _exit_code(threading._shutdown) or code  # as `multiprocessing` does
    with suppress(BaseException):
        atexit._run_exitfuncs()  # as `multiprocessing` does
    for stream in (sys.stdout, sys.stderr):
        with suppress(BaseException):
            stream.flush()
    return code


def serve(fd: int, owner: int) -> NoReturn:
    """Serve as a supervisor's process until its owner closes the channel, sends SIGTERM, or dies.

    Args:
        fd: This side's end of the channel.
        owner: Pid of the process that started this one.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED_FOR)
    # What the owner or its own parent ignores is none of the worker's business.
    for number in _DEFAULT:
        signal.signal(number, signal.SIG_DFL)
    die_with_parent(owner, signal.SIGTERM)
    adopt_orphans()
    os.environ[points.SWITCH] = "1"
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What was printed before a strike is evidence; a buffer would die with the incarnation.
        sys.stdout.reconfigure(line_buffering=True)
    forker = Forker(Channel(fd))
    try:
        forker.serve()
    except _LeaveError:
        pass
    finally:
        forker.clear()
        os._exit(0)


def _leave(_number: int, _frame: object) -> None:
    raise _LeaveError
