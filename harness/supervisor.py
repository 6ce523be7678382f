"""The supervisor: the one process that forks incarnations.

It is spawned, never forked, stays single-threaded, has imported and warmed the worker before the
first fork, and adopts every orphan that an incarnation leaves behind, so that none can hide.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
from typing import TYPE_CHECKING

from harness import points
from harness.errors import HarnessError
from harness.incarnation import Incarnation
from harness.process import adopt_orphans

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.scenario import Site

_COLLECT_EVERY = 100
"""The collector is off here; after so many experiments it is called by hand."""


class Supervisor:
    """Forks incarnations in this process and knows every process below it."""

    def __init__(self) -> None:
        os.environ[points.SWITCH] = "1"
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
        adopt_orphans()
        self._listed = f"/proc/self/task/{threading.get_native_id()}/children"
        self._spared: set[int] = set()
        self._incarnations: list[Incarnation] = []
        self._cleared = 0

    def spare(self, pid: int) -> None:
        """Remember a child that is no part of an experiment, such as the world."""
        self._spared.add(pid)

    def freeze(self) -> None:
        """Make this process ready to fork: no other thread, nothing for a collector to move.

        Raises:
            HarnessError: The warm-up left a thread behind.
        """
        others = [t.name for t in threading.enumerate() if t is not threading.main_thread()]
        if others:
            raise HarnessError(
                f"the warm-up of the worker left threads behind: {', '.join(others)}; "
                "a process with threads must not fork"
            )
        # As the documentation of `gc.freeze` has it: off in the parent, on again in the child.
        gc.disable()
        gc.collect()
        gc.freeze()

    def start(self, worker: Callable[[Site], None], site: Site, control_dir: Path) -> Incarnation:
        """Make an incarnation; it stands still until it is told to run."""
        incarnation = Incarnation(worker, site, control_dir)
        self._incarnations.append(incarnation)
        return incarnation

    def survivors(self) -> tuple[str, ...]:
        """Return what lives below this process though every incarnation should be dead.

        The kernel's list of children is read first; the process table is searched only when there
        is something to find.
        """
        if not self._children() - self._spared:
            return ()
        import psutil  # noqa: PLC0415 - not before it is needed: imports make forks slower

        found = []
        for process in psutil.Process().children(recursive=True):
            try:
                above = {parent.pid for parent in process.parents()}
                if not self._spared & {process.pid, *above}:
                    found.append(f"{process.name()!r}: {' '.join(process.cmdline())[:200]}")
            except psutil.Error:  # it has ended meanwhile, or only its wait status is left
                continue
        return tuple(sorted(found))

    def clear(self) -> None:
        """Kill and reap everything below this process but what is spared."""
        for incarnation in self._incarnations:
            if incarnation.has_run:
                incarnation.kill()
        self._incarnations.clear()
        self._cleared += 1
        if self._cleared % _COLLECT_EVERY == 0:
            gc.collect()
        while strays := self._children() - self._spared:
            for pid in strays:
                _end(pid)

    def _children(self) -> set[int]:
        try:
            with open(self._listed, encoding="ascii") as file:  # noqa: PTH123 - twice a life
                return {int(pid) for pid in file.read().split()}
        except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
            import psutil  # noqa: PLC0415

            return {process.pid for process in psutil.Process().children()}


def _end(pid: int) -> None:
    """Kill an adopted orphan, which is an un-reaped child, and reap it.

    Its own children come up as orphans of ours, so the caller looks again.
    """
    fd = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(fd, signal.SIGKILL)
        os.waitpid(pid, 0)
    finally:
        os.close(fd)
