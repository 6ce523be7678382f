"""The executor: how its lanes begin, and which of them runs what."""

from __future__ import annotations

import signal
from dataclasses import replace
from multiprocessing import Pipe
from typing import TYPE_CHECKING

import pytest
from harness_doubles import result, scenario

from harness.experiment.lane import Job, LaneServer
from harness.experiment.sharing import Sharing
from harness.explore import executor
from harness.model.errors import HarnessError
from harness.model.schedule import CONTROL
from harness.scenario import Scenario

if TYPE_CHECKING:
    from pathlib import Path


class ToldLane:
    """A lane that answers at once, and knows what it was asked."""

    def __init__(self, _root: Path, _core: int, _seed: int) -> None:
        self.connection, self._theirs = Pipe()
        self.warm: list[str] = []
        self.ran: list[str] = []
        self.jobs: list[Job] = []

    def send(self, method: object, what: Scenario | Job, *_more: object) -> None:
        """Be asked, and answer; a scenario named ``cold`` cannot be warmed."""
        if isinstance(what, Scenario):
            assert method is LaneServer.prepare
            self.warm.append(what.name)
            self._theirs.send(HarnessError("cold") if what.name == "cold" else None)
        else:
            assert method is LaneServer.run
            assert what.scenario in self.warm
            self.ran.append(what.scenario)
            self.jobs.append(what)
            self._theirs.send(result(scenario=what.scenario))

    def receive(self) -> object:
        """Give the oldest answer, or raise it."""
        answer = self.connection.recv()
        if isinstance(answer, HarnessError):
            raise answer
        return answer

    def stop(self) -> None:
        """Close the pipe."""
        self.connection.close()
        self._theirs.close()


@pytest.fixture
def lanes(monkeypatch: pytest.MonkeyPatch) -> list[ToldLane]:
    """Give the lanes that executors begin."""
    begun: list[ToldLane] = []

    def begin(root: Path, core: int, seed: int) -> ToldLane:
        begun.append(ToldLane(root, core, seed))
        return begun[-1]

    monkeypatch.setattr(executor, "LaneClient", begin)
    return begun


def _run(root: Path, lanes: int, counts: dict[str, int]) -> None:
    """Run so many experiments of each scenario; see that each job gets a result of its own."""
    jobs = [Job(name, CONTROL, 0) for name, count in counts.items() for _ in range(count)]
    with executor.Executor(lanes, root) as running:
        running.prepare([scenario(name) for name in counts])
        done = dict(running.run(jobs))
    assert [done[n].scenario for n in range(len(jobs))] == [job.scenario for job in jobs]


def test_each_scenario_stays_on_the_lane_that_warmed_it(
    tmp_path: Path, lanes: list[ToldLane]
) -> None:
    """Lanes keep to their scenarios: there, what one experiment found spares another work."""
    _run(tmp_path, 2, {"a": 6, "b": 6, "c": 6, "d": 6})
    one, other = lanes
    assert sorted(one.warm + other.warm) == ["a", "b", "c", "d"]
    assert set(one.ran) <= set(one.warm)
    assert set(other.ran) <= set(other.warm)
    assert len(one.ran) == len(other.ran) == 12


def test_a_lane_with_nothing_left_warms_a_scenario_of_another(
    tmp_path: Path, lanes: list[ToldLane]
) -> None:
    """Lanes keep to their scenarios, but none is idle while another has work."""
    _run(tmp_path, 3, {"only": 9})
    assert [lane.warm for lane in lanes] == [["only"]] * 3
    assert all(lane.ran for lane in lanes)
    assert sum(len(lane.ran) for lane in lanes) == 9


def test_what_is_known_to_leave_things_outside_runs_alone_from_the_beginning(
    tmp_path: Path, lanes: list[ToldLane]
) -> None:
    """A run that is gone on with treats its workers as it did before it was cut short."""
    jobs = [Job(name, CONTROL, 0) for name in ("leaves", "clean")]
    with executor.Executor(1, tmp_path, leaving=["leaves"]) as running:
        running.prepare([scenario("leaves"), scenario("clean")])
        assert len(dict(running.run(jobs))) == 2
    clean, leaves = lanes[0].jobs
    assert clean == jobs[1]
    assert leaves == replace(jobs[0], sharing=Sharing.NOTHING, watched=True)


def test_what_is_prepared_again_is_warm_already(tmp_path: Path, lanes: list[ToldLane]) -> None:
    """A matrix and a shrinker prepare the same scenarios on one executor."""
    with executor.Executor(1, tmp_path) as running:
        running.prepare([scenario("a"), scenario("a")])
        running.prepare([scenario("a")])
    assert lanes[0].warm == ["a"]


@pytest.mark.usefixtures("lanes")
def test_a_worker_that_cannot_be_warmed_is_told(tmp_path: Path) -> None:
    """Errors are for the reader: the owner hears what a lane could not do."""
    with (
        executor.Executor(2, tmp_path) as running,
        pytest.raises(HarnessError, match="cold"),
    ):
        running.prepare([scenario("cold")])


def test_an_interrupt_waits_until_the_lanes_have_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C is for the command; a lane that has not begun shows no error of its own."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    begun = []

    class BegunLane:
        def __init__(self, root: Path, core: int, seed: int) -> None:
            begun.append(signal.pthread_sigmask(signal.SIG_BLOCK, []))

    monkeypatch.setattr(executor, "LaneClient", BegunLane)
    executor.Executor(2, tmp_path)
    assert begun == [before | {signal.SIGINT}] * 2
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
