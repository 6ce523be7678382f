"""One process life of the worker, from its fork to its proved death.

An incarnation begins standing still. It is *stopped*, *running* or *dead*; each step asserts the
state it starts from. Only its supervisor, which is its parent, moves it.
"""

from __future__ import annotations

import gc
import io
import json
import os
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from harness import points
from harness.armed import Armed, write_orders
from harness.errors import DeadlineError, HarnessError
from harness.process import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.armed import Stop
    from harness.scenario import Site
    from harness.schedule import Moment

_EXIT_ERROR = 1
_CHUNK = 1 << 16


class State(Enum):
    """Where an incarnation is in its life."""

    STOPPED = "stopped"
    RUNNING = "running"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Hit:
    """A crash point that an incarnation reached.

    Attributes:
        label: Label of the point.
        context: Its context, as text.
        hits: How often it was reached so far: in all under ``""``, and with each context key.
        stop: Whether the incarnation stopped itself there.
    """

    label: str
    context: dict[str, str]
    hits: dict[str, int]
    stop: bool

    def is_at(self, moment: Moment) -> bool:
        """Tell whether this hit is the given moment."""
        return (
            self.label == moment.label
            and (not moment.key or self.context.get(moment.key) == moment.value)
            and self.hits[moment.key] == moment.ordinal
        )


@dataclass(frozen=True, slots=True)
class Death:
    """How an incarnation ended, from its wait status.

    Attributes:
        signal: Number of the signal that killed it, or 0.
        exit_code: Its exit code, or -1 when a signal killed it.
    """

    signal: int
    exit_code: int

    @property
    def killed(self) -> bool:
        """Whether SIGKILL ended it; the kernel says so, not the worker."""
        return self.signal == signal.SIGKILL

    @property
    def clean(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.signal == 0 and self.exit_code == 0

    def __str__(self) -> str:
        if self.signal:
            return f"killed by {signal.Signals(self.signal).name}"
        return f"exited with code {self.exit_code}"


class ForeignStopError(HarnessError):
    """The incarnation was stopped, but not by itself at a point where it was ordered to."""


class Incarnation:
    """A forked worker process under the eyes of its parent.

    Args:
        worker: The worker, called with the site in the child.
        site: What the worker is given.
        control_dir: Directory for orders, trace and output of this incarnation.

    The caller's thread must be the only one of its process and must have SIGCHLD blocked.
    """

    def __init__(self, worker: Callable[[Site], None], site: Site, control_dir: Path) -> None:
        self.number = site.incarnation
        stem = str(control_dir / str(site.incarnation))
        self._orders_path = f"{stem}.orders.json"
        self._trace_path = f"{stem}.trace.ndjson"
        self._output_path = f"{stem}.output.txt"
        self._trace_fd = -1
        self._trace_rest = b""
        self.hits: list[Hit] = []
        self.death: Death | None = None
        self.state = State.STOPPED
        self._pid = 0
        self._pidfd = -1
        self._life = (worker, site)

    @property
    def has_run(self) -> bool:
        """Whether it has been let run: only then is there a process."""
        return self._pid > 0

    def resume(self, stops: Sequence[Stop]) -> None:
        """Let it run; where it is to stop next is settled before it goes on.

        The process is forked when it is let run for the first time: until then there is nothing
        that could be seen of it.

        Args:
            stops: Where to stop.
        """
        self._require(State.STOPPED)
        self.state = State.RUNNING
        if self.has_run:
            write_orders(self._orders_path, self._trace_path, stops)
            signal.pidfd_send_signal(self._pidfd, signal.SIGCONT)
            return
        self._trace_fd = os.open(self._trace_path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        parent = os.getpid()
        # An exception that a handler raises in the middle of a fork is lost in Python's own hooks.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
        self._pid = os.fork()
        if self._pid == 0:
            worker, site = self._life
            armed = Armed(self._trace_path, stops, self._orders_path)
            _live(worker, site, armed, self._output_path, parent)
        self._pidfd = os.pidfd_open(self._pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))

    def wait(self, what: str, deadline_s: float) -> Hit | None:
        """Wait until it stops at an ordered point or dies.

        Args:
            what: What is waited for, for the message of a missed deadline.
            deadline_s: Longest wait, in seconds.

        Returns:
            The hit at which it stopped, or None when it died (see `death`).

        Raises:
            DeadlineError: Neither happened in time; the incarnation is still running.
            ForeignStopError: Something else stopped it.
        """
        self._require(State.RUNNING)
        self._wait(what, deadline_s)
        self._read_trace()
        if self.death is not None:
            return None
        if not self.hits or not self.hits[-1].stop:
            raise ForeignStopError(f"incarnation {self.number} was stopped from outside")
        return self.hits[-1]

    def kill(self, deadline_s: float = 10.0) -> Death:
        """Send SIGKILL, through its pidfd, and wait for the proof of death.

        Args:
            deadline_s: Longest wait for the wait status, in seconds.

        Returns:
            How it died. SIGKILL is proved by the wait status; anything else means that it had
            already ended otherwise.

        Raises:
            HarnessError: It has never been let run.
            DeadlineError: No wait status came in time.
        """
        if not self.has_run:
            raise HarnessError(f"incarnation {self.number} has not run, so it cannot be killed")
        if self.death is None:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        while self.death is None:
            self._wait(f"death of incarnation {self.number}", deadline_s)
        if self._trace_fd >= 0:
            self._read_trace()
            os.close(self._trace_fd)
            self._trace_fd = -1
        return self.death

    def output(self, limit_bytes: int = 4000) -> str:
        """Return the end of what it wrote to standard output and error."""
        with Path(self._output_path).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - limit_bytes))
            return file.read().decode(errors="replace")

    def _require(self, state: State) -> None:
        if self.state is not state:
            raise HarnessError(
                f"incarnation {self.number} is {self.state.value}, not {state.value}"
            )

    def _read_trace(self) -> None:
        while new := os.read(self._trace_fd, _CHUNK):
            self._trace_rest += new
        *lines, self._trace_rest = self._trace_rest.split(b"\n")
        self.hits.extend(Hit(**json.loads(line)) for line in lines)

    def _wait(self, what: str, deadline_s: float) -> None:
        """Wait until it stops or dies.

        SIGCHLD is blocked in this process, so one that comes between the look and the wait stays
        pending and nothing is missed (sigtimedwait(2)).
        """
        end = time.monotonic() + deadline_s
        while True:
            pid, status = os.waitpid(self._pid, os.WUNTRACED | os.WNOHANG)
            if pid:
                self._settle(status)
                return
            left = end - time.monotonic()
            if left <= 0:
                self._read_trace()
                raise DeadlineError(what, deadline_s)
            signal.sigtimedwait((signal.SIGCHLD,), left)

    def _settle(self, status: int) -> None:
        if os.WIFSTOPPED(status):
            self.state = State.STOPPED
            return
        self.state = State.DEAD
        if os.WIFSIGNALED(status):
            self.death = Death(os.WTERMSIG(status), -1)
        else:
            self.death = Death(0, os.WEXITSTATUS(status))
        os.close(self._pidfd)


def _live(
    worker: Callable[[Site], None], site: Site, armed: Armed, output: str, parent: int
) -> None:
    """Be the incarnation; never returns."""
    code = _EXIT_ERROR
    try:
        die_with_parent(parent)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), 1)
        os.dup2(1, 2)
        if isinstance(sys.stdout, io.TextIOWrapper):
            # What was printed before a strike is evidence; a buffer would die with the process.
            sys.stdout.reconfigure(line_buffering=True)
        points.arm(armed.hit)
        gc.enable()
        worker(site)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - whatever it is, it ends here and is shown in the output
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
