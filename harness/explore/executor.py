"""The executor: several lanes, each with one experiment at a time."""

from __future__ import annotations

import multiprocessing.connection
import os
import signal
from collections import deque
from typing import TYPE_CHECKING, Self, cast

from harness.errors import DeadlineError
from harness.lane import Lane

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from harness.lane import Job
    from harness.result import ExperimentResult
    from harness.scenario import Scenario

_EXPERIMENT_S = 300.0
_AHEAD = 2
"""How many experiments a lane is given at once, so that it need not wait for the next."""


class Executor:
    """Runs experiments on lanes.

    Args:
        lanes: How many run at once.
        root: Directory for workspaces.
        keep: Directory for what broken experiments left, or None to keep nothing.
    """

    def __init__(self, lanes: int, root: Path, keep: Path | None = None) -> None:
        self._keep = keep
        cores = sorted(os.sched_getaffinity(0))
        # A lane ignores a Ctrl-C at the terminal, but only once it has begun.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._lanes = [Lane(root, cores[number % len(cores)]) for number in range(lanes)]
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def keeping(self, keep: Path) -> Self:
        """Keep what broken experiments leave in another directory from now on."""
        self._keep = keep
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for lane in self._lanes:
            lane.stop()

    def prepare(self, scenarios: Iterable[Scenario]) -> None:
        """Warm the workers of scenarios on every lane.

        Raises:
            HarnessError: A worker could not be warmed.
        """
        for scenario in scenarios:
            for lane in self._lanes:
                lane.send("prepare", scenario)
            for lane in self._lanes:
                lane.receive()

    def run(
        self, jobs: Sequence[Job], *, keep: bool = True
    ) -> Iterator[tuple[int, ExperimentResult]]:
        """Run experiments.

        Args:
            jobs: What to run; their scenarios have been prepared.
            keep: Whether to keep what broken ones left, if there is a directory for it.

        Yields:
            The index of a job and its result, as they end.

        Raises:
            HarnessError: The harness itself failed.
        """
        waiting = deque(enumerate(jobs))
        given: dict[Lane, deque[int]] = {lane: deque() for lane in self._lanes}
        while waiting or any(given.values()):
            # One each in turn, so that no lane has two while another has none.
            for _ in range(_AHEAD):
                for lane in self._lanes:
                    if waiting and len(given[lane]) < _AHEAD:
                        index, job = waiting.popleft()
                        lane.send("run", job, self._keep if keep else None)
                        given[lane].append(index)
            busy = [lane.connection for lane, indexes in given.items() if indexes]
            ready = multiprocessing.connection.wait(busy, _EXPERIMENT_S)
            if not ready:
                raise DeadlineError("an experiment to end", _EXPERIMENT_S)
            for lane in self._lanes:
                if lane.connection in ready:
                    result = cast("ExperimentResult", lane.receive())
                    yield given[lane].popleft(), result
