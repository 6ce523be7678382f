"""An incarnation: one process life of the worker, from its fork to its proved death.

An incarnation begins stopped. It is *stopped*, *running* or *dead*; each step asserts the
state it starts from. Only its supervisor, whose process is its parent, moves it.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from harness.model.bounds import BLOCK_BYTES
from harness.model.errors import DeadlineError, HarnessError
from harness.model.regular_file import open_regular
from harness.model.trace import Death
from harness.points.armed import write_orders
from harness.processes.linux import wait_until_stopped
from harness.processes.trace_reader import TraceReader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.model.site import Site
    from harness.model.trace import Hit
    from harness.points.armed import StopOrder
    from harness.processes.linux import PlainLimits
    from harness.processes.supervisor import Supervisor


_FIRST_LOOK_S = 0.1
_LONGEST_PAUSE_S = 1.0

_KEPT_BYTES = 1 << 20
"""How much is kept of what it wrote to standard output and error, once it is dead."""


def _look_at_nothing() -> None:
    """Look at nothing while an incarnation runs."""


class State(Enum):
    """The state of an incarnation."""

    STOPPED = "stopped"
    RUNNING = "running"
    DEAD = "dead"


class ForeignStopError(HarnessError):
    """The incarnation was stopped, but not by itself at a point where it was ordered to."""


class Incarnation:
    """A forked worker process, as its supervisor sees it.

    Args:
        supervisor: Forks it, and is its parent.
        scenario: Name of the scenario whose worker it is.
        site: What the worker is given.
        control_dir: Directory for orders, trace and output of this incarnation.
        limits: What the kernel is to refuse it.
        fresh: Whether it gets an interpreter of its own.
        watched: Whether it notes what it does outside of its workspace (`outside_notes`).

    Attributes:
        number: Its number in the experiment, from 1.
        trace: The points that it has hit.
        death: How it died, once it has.
        state: Whether it stands still, runs or is dead.
        has_run: Whether it was ever let run.
        output_bytes: How much room its output took on the disk when it died.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        scenario: str,
        site: Site,
        control_dir: Path,
        limits: PlainLimits,
        *,
        fresh: bool = False,
        watched: bool = False,
    ) -> None:
        self.number = site.incarnation
        self._supervisor = supervisor
        self._stem = str(control_dir / str(site.incarnation))
        self.trace = TraceReader(f"{self._stem}.trace.ndjson", site.incarnation)
        self.death: Death | None = None
        self.output_bytes = 0
        self.state = State.STOPPED
        self.has_run = False
        self._child = 0
        self._to_fork = (scenario, site, limits)
        self._fresh = fresh
        self._watched = watched

    def resume(self, stops: Sequence[StopOrder]) -> None:
        """Let it run; it is told where to stop next before it goes on.

        The process is forked the first time that it is let run: nothing could be seen of it before.

        Args:
            stops: Where to stop.
        """
        self._require(State.STOPPED)
        self.state = State.RUNNING
        if self.has_run:
            write_orders(f"{self._stem}.orders.json", self.trace.path, stops)
            self._supervisor.go_on(self.number, self._child)
            self._child = 0
            return
        self.has_run = True
        scenario, site, limits = self._to_fork
        self._supervisor.fork(
            scenario, site, self._stem, stops, limits, fresh=self._fresh, watched=self._watched
        )

    def wait(
        self, what: str, deadline_s: float, look: Callable[[], None] = _look_at_nothing
    ) -> Hit | None:
        """Wait until it stops at an ordered point or dies.

        Args:
            what: What is waited for, for the message of a missed deadline.
            deadline_s: Longest wait, in seconds.
            look: Called now and then while it runs, for what nothing tells of; what it raises ends
                the wait.

        Returns:
            The hit at which it stopped, or None when it died (see `death`).

        Raises:
            DeadlineError: Neither happened in time; the incarnation is still running.
            ForeignStopError: Something else stopped it: the worker itself, say.
            DamagedTraceError: Something else has written to its trace.
        """
        self._require(State.RUNNING)
        before = len(self.trace.hits)
        status = self._status(deadline_s, look)
        self.trace.read()
        if status is None:
            raise DeadlineError(what, deadline_s)
        if not os.WIFSTOPPED(status):
            death = self._die(status, foreign=True)
            if death.clean and not self.trace.is_there:
                raise self.trace.removed()
            return None
        self.state = State.STOPPED
        # Other threads may have written more before the stop took effect.
        ordered = [hit for hit in self.trace.hits[before:] if hit.stop]
        if not ordered:
            raise ForeignStopError(
                f"incarnation {self.number} was stopped, but not by itself at a point where it was "
                "ordered to"
            )
        hit = ordered[-1]
        if hit.pid:
            # It has stopped the worker, which is waited for, and stops itself next.
            wait_until_stopped(hit.pid, deadline_s)
            self._child = hit.pid
        return hit

    def _status(self, deadline_s: float, look: Callable[[], None]) -> int | None:
        end = time.monotonic() + deadline_s
        pause_s, left_s = _FIRST_LOOK_S, deadline_s
        while True:
            status = self._supervisor.wait(self.number, min(pause_s, left_s))
            if status is not None:
                return status
            look()  # when it is late as well: what it has run out of says more than that
            left_s = end - time.monotonic()
            if left_s <= 0:
                return None
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def kill(self, deadline_s: float = 10.0) -> Death:
        """Have SIGKILL sent, and wait for the proof of death.

        If it stands at a point that a child of it has reached, everything that it has started is
        killed, and the child's death is proved like its own.

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
            status, ours = self._supervisor.kill(self.number, self._child, deadline_s)
            if status is None:
                raise DeadlineError(f"the death of incarnation {self.number}", deadline_s)
            self.trace.read()
            return self._die(status, foreign=not ours)
        return self.death

    @property
    def outside_notes(self) -> Path:
        """File with what it did outside of its workspace; not there if it did nothing."""
        return Path(f"{self._stem}.outside.txt")

    def kill_group(self) -> None:
        """Have it killed with everything in its process group; `kill` waits for its death."""
        self._supervisor.kill_group(self.number)

    def output(self, limit_bytes: int = 4000) -> str:
        """Return the end of what it wrote to standard output and error, or that there is none."""
        try:
            with open_regular(f"{self._stem}.output.txt") as file:
                begin = max(0, os.fstat(file.fileno()).st_size - limit_bytes)
                file.seek(begin)
                end = file.read(limit_bytes)
                # A line that is cut says little, unless it is all that there is.
                whole = end.partition(b"\n")[2] if begin else end
                return (whole or end).decode(errors="replace")
        except OSError:  # it died before it had one, or removed or replaced it
            return "(there is no file with its output any more)" if self.has_run else ""

    def _shorten_output(self) -> None:
        """Note how much room the output takes, and keep no more than the end of a long one."""
        path = f"{self._stem}.output.txt"
        with suppress(OSError):
            status = os.lstat(path)
            self.output_bytes = status.st_blocks * BLOCK_BYTES
            left_out = status.st_size - _KEPT_BYTES
            if left_out <= 0:
                return
            with open_regular(path) as file:
                file.seek(left_out)
                end = file.read(_KEPT_BYTES)  # whoever survived may write on
                # The same file, whatever stands at its path by now.
                fd = os.open(f"/proc/self/fd/{file.fileno()}", os.O_WRONLY | os.O_TRUNC)
                with open(fd, "wb") as shorter:  # noqa: PTH123 - a descriptor
                    shorter.write(f"({left_out:,} bytes left out)\n".encode() + end)

    def _require(self, state: State) -> None:
        if self.state is not state:
            raise HarnessError(
                f"incarnation {self.number} is {self.state.value}, not {state.value}"
            )

    def _die(self, status: int, *, foreign: bool) -> Death:
        self.state = State.DEAD
        if os.WIFSIGNALED(status):
            self.death = Death(os.WTERMSIG(status), -1, foreign)
        else:
            self.death = Death(0, os.WEXITSTATUS(status))
        self._shorten_output()
        return self.death
