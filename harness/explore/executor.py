"""The executor: several lanes, each with one experiment at a time."""

from __future__ import annotations

import multiprocessing.connection
import os
import signal
import sys
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Self, cast

from harness.experiment.lane import LaneServer, longest_experiment_s
from harness.experiment.lane_client import LaneClient
from harness.experiment.lost import clear_up_after_the_dead, lost_in_warm_up, lost_result
from harness.experiment.sharing import Sharing
from harness.experiment.unjudged import unjudged
from harness.model.errors import DeadlineError, HarnessError, ProcessLostError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from harness.experiment.lane import Job
    from harness.explore.stop_signals import StopSignals
    from harness.model.result import ExperimentResult
    from harness.scenario import Scenario

_AHEAD = 2
"""How many experiments a lane is given at once, so that it need not wait for the next."""

_LOOK_S = 1.0
"""How often to look whether a lane that is waited for stands still."""


class Executor:
    """Runs experiments on lanes.

    A lane that is lost is replaced. What it was doing is done once more; an experiment that loses
    its lane again comes to that.

    Args:
        lanes: How many run at once.
        root: Directory for workspaces.
        keep: Directory for what broken experiments left, or None to keep nothing.
        stop: Is heard while experiments run: what asks for a stop ends `prepare` and `run`.
        seed: The seed of what will be run: the hash seed of workers comes from it.
        leaving: Names of scenarios whose workers are known to leave something outside of their
            workspace.
    """

    def __init__(
        self,
        lanes: int,
        root: Path,
        keep: Path | None = None,
        stop: StopSignals | None = None,
        *,
        seed: int = 0,
        leaving: Iterable[str] = (),
    ) -> None:
        self._keep = keep
        self._stop = stop
        self._root = root
        self._seed = seed
        for left in clear_up_after_the_dead(root):  # before the lanes do, which tell nobody
            sys.stderr.write(f"crash-harness: {left}\n")
        self._lanes = [self._new_lane(number) for number in range(lanes)]
        self._scenarios: dict[str, Scenario] = {}
        self._warm: dict[LaneClient, set[str]] = {lane: set() for lane in self._lanes}
        # Names of scenarios whose workers leave something where no crash image has it.
        self._leaving = set(leaving)
        # What each lane has been given and has not answered: a job's index, or what to warm.
        self._given: dict[LaneClient, deque[int | Scenario]] = {
            lane: deque() for lane in self._lanes
        }
        self._lost_in_warm_up: set[str] = set()
        # Scenarios that have lost their lane in the warm-up twice, and how.
        self._unready: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for lane in self._lanes:
            with suppress(ValueError):  # ended already, when this was interrupted before
                lane.stop()

    def prepare(self, scenarios: Iterable[Scenario]) -> None:
        """Warm the workers of scenarios, each on one lane.

        A worker that cannot be warmed comes to that in each of its experiments.

        Raises:
            HarnessError: The harness itself failed.
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
                scenario, answer = self._received(lane)
                if isinstance(answer, ProcessLostError):
                    self._replace(lane)
                    if self._may_warm_up_again(cast("Scenario", scenario), answer):
                        waiting.append(cast("Scenario", scenario))

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
        losses: dict[int, ProcessLostError] = {}
        while waiting or any(self._given.values()):
            yield from self._cannot_be_run(jobs, waiting)
            self._give(jobs, waiting, self._keep if keep else None)
            for lane in self._answering():
                done, answer = self._received(lane)
                if isinstance(answer, ProcessLostError):
                    yield from self._give_back(self._replace(lane), answer, jobs, waiting, losses)
                elif isinstance(done, int):
                    yield done, cast("ExperimentResult", answer)

    def _cannot_be_run(
        self, jobs: Sequence[Job], waiting: dict[str, deque[int]]
    ) -> Iterator[tuple[int, ExperimentResult]]:
        """Take out the jobs whose workers cannot be warmed, and give what they come to."""
        for name in waiting.keys() & self._unready.keys():
            for index in waiting.pop(name):
                job = jobs[index]
                yield index, unjudged(name, job.schedule, job.seed, self._unready[name])

    def _give(self, jobs: Sequence[Job], waiting: dict[str, deque[int]], keep: Path | None) -> None:
        """Give the lanes something to do, one each in turn: none has two while another has none."""
        for _ in range(0 if self._stopping else _AHEAD):
            for lane in self._lanes:
                if waiting and len(self._given[lane]) < _AHEAD:
                    index = self._take(lane, waiting)
                    job = jobs[index]
                    if job.scenario in self._leaving:
                        job = replace(job, sharing=Sharing.NOTHING, watched=True)
                    lane.send(LaneServer.run, job, keep)
                    self._given[lane].append(index)

    def _received(self, lane: LaneClient) -> tuple[int | Scenario, object]:
        """Return the oldest of what a lane was given, and its answer, or how the lane was lost."""
        try:
            answer = lane.receive()
        except ProcessLostError as error:
            return self._given[lane][0], error
        except HarnessError:
            self._given[lane].popleft()
            raise
        return self._given[lane].popleft(), answer

    def _give_back(
        self,
        given: deque[int | Scenario],
        error: ProcessLostError,
        jobs: Sequence[Job],
        waiting: dict[str, deque[int]],
        losses: dict[int, ProcessLostError],
    ) -> Iterator[tuple[int, ExperimentResult]]:
        """Let what a lost lane was given be done by another, unless it is lost the second time."""
        first = given[0]
        if not isinstance(first, int):
            self._may_warm_up_again(first, error)
        elif first in losses:
            given.popleft()
            job = jobs[first]
            yield first, lost_result(job.scenario, job.schedule, job.seed, losses[first], error)
        else:
            losses[first] = error
        for index in reversed(given):
            if isinstance(index, int):
                waiting.setdefault(jobs[index].scenario, deque()).appendleft(index)

    def _new_lane(self, number: int) -> LaneClient:
        cores = sorted(os.sched_getaffinity(0))
        # A lane ignores a Ctrl-C at the terminal, but only once it has begun.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return LaneClient(self._root, cores[number % len(cores)], self._seed)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def _replace(self, lost: LaneClient) -> deque[int | Scenario]:
        """Put another lane in the place of one that is lost; return what that had been given."""
        lost.stop()
        del self._warm[lost]
        number = self._lanes.index(lost)
        lane = self._lanes[number] = self._new_lane(number)
        self._warm[lane] = set()
        self._given[lane] = deque()
        return self._given.pop(lost)

    def _may_warm_up_again(self, scenario: Scenario, error: ProcessLostError) -> bool:
        """Note that a lane was lost in a warm-up, and tell whether it may be tried once more."""
        if scenario.name in self._lost_in_warm_up:
            self._unready[scenario.name] = lost_in_warm_up(scenario.name, error)
        self._lost_in_warm_up.add(scenario.name)
        return scenario.name not in self._unready

    def _warm_up(self, lane: LaneClient, scenario: Scenario) -> None:
        lane.send(LaneServer.prepare, scenario)
        self._given[lane].append(scenario)
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

        Once a stop was asked for, only what has been answered already is taken. A lane that stands
        still is among them: asked for its answer, it says why there is none.
        """
        busy = [lane for lane in self._lanes if self._given[lane]]
        stop = [self._stop.fileno()] if self._stop is not None else []
        longest_s = longest_experiment_s(self._scenarios.values())
        end = time.monotonic() + longest_s
        while True:
            patience_s = 0.0 if self._stopping else _LOOK_S
            waited_for = [*(lane.connection for lane in busy), *stop]
            ready = multiprocessing.connection.wait(waited_for, patience_s)
            answering = [lane for lane in busy if lane.connection in ready]
            if self._stop is not None and not answering:
                self._stop.check()
            if ready:
                return answering
            if still := [lane for lane in busy if lane.stands_still]:
                return still
            if time.monotonic() >= end:
                raise DeadlineError("an experiment to end", longest_s)

    @property
    def _stopping(self) -> bool:
        return self._stop is not None and self._stop.received
