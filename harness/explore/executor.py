"""The executor: several lanes, each with one experiment at a time."""

from __future__ import annotations

import multiprocessing.connection
import os
import signal
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Self, cast

from harness.experiment.lane import LaneServer, longest_experiment_s
from harness.experiment.lane_client import LaneClient
from harness.experiment.sharing import Sharing
from harness.model.errors import DeadlineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from harness.experiment.lane import Job
    from harness.explore.stop_signals import StopSignals
    from harness.model.result import ExperimentResult
    from harness.scenario import Scenario

_AHEAD = 2
"""How many experiments a lane is given at once, so that it need not wait for the next."""


class Executor:
    """Runs experiments on lanes.

    Args:
        lanes: How many run at once.
        root: Directory for workspaces.
        keep: Directory for what broken experiments left, or None to keep nothing.
        stop: Is heard while experiments run: what asks for a stop ends `prepare` and `run`.
        seed: The seed of what will be run: the hash seed of workers comes from it.
    """

    def __init__(
        self,
        lanes: int,
        root: Path,
        keep: Path | None = None,
        stop: StopSignals | None = None,
        *,
        seed: int = 0,
    ) -> None:
        self._keep = keep
        self._stop = stop
        cores = sorted(os.sched_getaffinity(0))
        # A lane ignores a Ctrl-C at the terminal, but only once it has begun.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._lanes = [
                LaneClient(root, cores[number % len(cores)], seed) for number in range(lanes)
            ]
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self._scenarios: dict[str, Scenario] = {}
        self._warm: dict[LaneClient, set[str]] = {lane: set() for lane in self._lanes}
        # Names of scenarios whose workers leave something where no crash image has it.
        self._leaving: set[str] = set()
        # What each lane has been given and has not answered: a job's index, or None for a warm-up.
        self._given: dict[LaneClient, deque[int | None]] = {lane: deque() for lane in self._lanes}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for lane in self._lanes:
            lane.stop()

    def prepare(self, scenarios: Iterable[Scenario]) -> None:
        """Warm the workers of scenarios, each on one lane.

        Raises:
            HarnessError: A worker could not be warmed.
            StopRequestedError: A signal asked for it.
        """
        new = {scenario.name: scenario for scenario in scenarios}
        waiting = deque(s for name, s in new.items() if name not in self._scenarios)
        self._scenarios = new | self._scenarios
        while waiting or any(self._given.values()):
            for lane in self._lanes:
                if waiting and not self._given[lane]:
                    self._warm_up(lane, waiting.popleft())
            for lane in self._answering():
                self._given[lane].popleft()
                lane.receive()

    def run(
        self, jobs: Sequence[Job], *, keep: bool = True
    ) -> Iterator[tuple[int, ExperimentResult]]:
        """Run experiments.

        A lane keeps to the scenarios that it has warmed, where what one experiment found spares
        the next one some work, and takes over others when it has none left. Experiments whose
        worker leaves something outside of its workspace run one at a time and share nothing.

        Args:
            jobs: What to run; their scenarios have been prepared.
            keep: Whether to keep what broken ones left, if there is a directory for it.

        Yields:
            The index of a job and its result, as they end.

        Raises:
            HarnessError: The harness itself failed.
            StopRequestedError: A signal asked for it.
        """
        # What a worker leaves outside of its workspace, another experiment of it would find.
        alone = [index for index, job in enumerate(jobs) if job.scenario in self._leaving]
        together = [index for index in range(len(jobs)) if index not in alone]
        for indices in (together, *([index] for index in alone)):
            for index, result in self._run(jobs, indices, keep=keep):
                if result.outside:
                    self._leaving.add(result.scenario)
                yield index, result

    def _run(
        self, jobs: Sequence[Job], indices: Sequence[int], *, keep: bool
    ) -> Iterator[tuple[int, ExperimentResult]]:
        waiting: dict[str, deque[int]] = {}
        for index in indices:
            waiting.setdefault(jobs[index].scenario, deque()).append(index)
        while waiting or any(self._given.values()):
            # One each in turn, so that no lane has two while another has none.
            for _ in range(0 if self._stopping else _AHEAD):
                for lane in self._lanes:
                    if waiting and len(self._given[lane]) < _AHEAD:
                        index = self._take(lane, waiting)
                        job = jobs[index]
                        if job.scenario in self._leaving:
                            job = replace(job, sharing=Sharing.NOTHING, watched=True)
                        lane.send(LaneServer.run, job, self._keep if keep else None)
                        self._given[lane].append(index)
            for lane in self._answering():
                given = self._given[lane].popleft()
                answer = lane.receive()
                if given is not None:
                    yield given, cast("ExperimentResult", answer)

    def _warm_up(self, lane: LaneClient, scenario: Scenario) -> None:
        lane.send(LaneServer.prepare, scenario)
        self._given[lane].append(None)
        self._warm[lane].add(scenario.name)

    def _take(self, lane: LaneClient, waiting: dict[str, deque[int]]) -> int:
        """Take a lane's next job, of a scenario that is warm there if there is one."""
        others = [warm for other, warm in self._warm.items() if other is not lane]

        def preference(name: str) -> tuple[bool, bool, int]:
            alone = not any(name in warm for warm in others)
            return name in self._warm[lane], alone, len(waiting[name])

        name = max(waiting, key=preference)
        if name not in self._warm[lane]:
            self._warm_up(lane, self._scenarios[name])
        index = waiting[name].popleft()
        if not waiting[name]:
            del waiting[name]
        return index

    def _answering(self) -> list[LaneClient]:
        """Wait for lanes to answer the oldest request that they have been given.

        Once a stop was asked for, only what has been answered already is taken.
        """
        busy = [lane.connection for lane in self._lanes if self._given[lane]]
        stop = [self._stop.fileno()] if self._stop is not None else []
        longest_s = longest_experiment_s(self._scenarios.values())
        patience_s = 0.0 if self._stopping else longest_s
        ready = multiprocessing.connection.wait([*busy, *stop], patience_s)
        answering = [lane for lane in self._lanes if lane.connection in ready]
        if self._stop is not None and not answering:
            self._stop.check()
        if not ready:
            raise DeadlineError("an experiment to end", longest_s)
        return answering

    @property
    def _stopping(self) -> bool:
        return self._stop is not None and self._stop.received
