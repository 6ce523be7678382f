"""The verbs, to be used by hand: in a test, or step by step at a prompt.

::

    with Experiment(scenario, seed=7) as x:
        a = x.start()
        a.run_until("effect.charge.before")    # stopped there
        b = x.start(identity="same")           # a second instance while the first is frozen
        b.run_until_quiet()
        a.resume()                             # the zombie wakes up
        x.settle()
        x.check().raise_if_not_held()

A schedule says the same as data: `run_schedule` runs one, `harness.explore` many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, cast

from harness.experiment.lane import Job, LaneServer, longest_experiment_s
from harness.experiment.lane_client import LaneClient
from harness.experiment.rig import Rig
from harness.images.root import default_root
from harness.model.errors import HarnessError
from harness.model.result import ExperimentResult, NotHeldError, Verdict, Violation
from harness.model.schedule import parse

if TYPE_CHECKING:
    from pathlib import Path

    from harness.experiment.rig import Halt
    from harness.model.image import Image
    from harness.model.trace import Death
    from harness.model.workload import Command
    from harness.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Check:
    """What the oracles said.

    Attributes:
        verdict: `HELD`, `BROKEN` or `UNKNOWN`.
        violations: For `BROKEN`: what was found.
        note: For `UNKNOWN`: why.
    """

    verdict: Verdict
    violations: tuple[Violation, ...]
    note: str

    def raise_if_not_held(self) -> None:
        """Raise with everything that was found unless the verdict is `HELD`.

        Raises:
            NotHeldError: The verdict is another one.
        """
        if self.verdict is not Verdict.HELD:
            found = [f"{v.oracle}: {v.message}" for v in self.violations]
            raise NotHeldError("\n".join([self.verdict, *found, self.note]).rstrip())


def run_schedule(
    scenario: Scenario, schedule: str, seed: int = 0, root: Path | None = None
) -> ExperimentResult:
    """Run one schedule from start to verdict; what does not hold is run again before it is told.

    Args:
        scenario: What is tried.
        schedule: Its text, for example ``ack.send.after#1=kill``; empty for the control leg.
        seed: Source of everything random.
        root: Directory for the workspace; see `harness.images.root.default_root`.

    Raises:
        UsageError: The text is not a schedule.
    """
    parsed = parse(schedule)
    lane = LaneClient(root or default_root(), seed=seed)
    try:
        lane.call(LaneServer.prepare, scenario)
        lane.send(LaneServer.run, Job(scenario.name, parsed, seed), None)
        return cast("ExperimentResult", lane.receive(longest_experiment_s([scenario])))
    finally:
        lane.stop()


class IncarnationHandle:
    """An incarnation of an experiment that is run by hand.

    Attributes:
        number: From 1.
    """

    def __init__(self, experiment: Experiment, number: int) -> None:
        self._experiment = experiment
        self.number = number

    def run_until(self, moment: str) -> Halt:
        """Let it run until it stops at a moment, is quiet, or dies.

        Args:
            moment: For example ``ack.send.before`` or ``ack.send.before[command=c2]#1``.

        Returns:
            Where it halted; look at `Halt.hit` for the moment.
        """
        wanted = parse(f"{moment}=kill").moments
        if len(wanted) != 1:
            raise HarnessError(f"{moment!r} is not one moment")
        return self._experiment.lane.call_rig(Rig.run_until, self.number, wanted[0])

    def run_until_quiet(self) -> Halt:
        """Let it run until nothing is left to do, or until it dies."""
        return self._experiment.lane.call_rig(Rig.run_until_quiet, self.number)

    def resume(self) -> None:
        """Let it go on, and do not wait for it."""
        self._experiment.lane.call_rig(Rig.resume, self.number)

    def kill(self) -> Death:
        """Kill it, with proof of its death."""
        return self._experiment.lane.call_rig(Rig.kill, self.number)

    def output(self) -> str:
        """Return the end of what it wrote to standard output and error."""
        return self._experiment.lane.call_rig(Rig.output, self.number)


class Experiment:
    """One scenario, one seed, and the verbs to strike its worker by hand.

    Args:
        scenario: What is tried.
        seed: Source of everything random.
        root: Directory for the workspace; see `harness.images.root.default_root`.

    Attributes:
        worker_dir: The worker's directory, once the experiment has been entered.
        world_dir: The world's directory, once the experiment has been entered.
    """

    worker_dir: Path
    world_dir: Path

    def __init__(self, scenario: Scenario, seed: int = 0, root: Path | None = None) -> None:
        self.scenario = scenario
        self.seed = seed
        self._root = root or default_root()
        self._lane: LaneClient | None = None

    def __enter__(self) -> Self:
        self._lane = LaneClient(self._root, seed=self.seed)
        try:
            self._lane.call(LaneServer.prepare, self.scenario)
            directories = self._lane.call(LaneServer.open, self.scenario.name, self.seed)
        except BaseException:
            self._lane.stop()
            raise
        self.worker_dir, self.world_dir = directories
        return self

    def __exit__(self, *_error: object) -> None:
        lane, self._lane = self.lane, None
        try:
            lane.call(LaneServer.close)
        finally:
            lane.stop()

    def start(self, identity: str = "same") -> IncarnationHandle:
        """Start an incarnation; it stands still until it is told to run.

        Args:
            identity: ``"same"`` for the worker's own identity, or another one.
        """
        return IncarnationHandle(self, self.lane.call_rig(Rig.start, identity))

    def offer(self, command: Command) -> None:
        """Offer one more command to the worker."""
        self.lane.call_rig(Rig.offer, command)

    def image(self, name: str) -> Image:
        """Take a crash image of what is durable now; it is gone when the experiment is left."""
        return self.lane.call_rig(Rig.image, name)

    def settle(self) -> None:
        """Let every living incarnation become quiet.

        If none is alive, one is started and becomes quiet: that is the recovery, and not a look at
        what the last one left. To see whether a worker that stands at its quiet point has left
        something lying, look at `worker_dir` before.
        """
        self.lane.call(LaneServer.settle)

    def check(self) -> Check:
        """Restart the worker once more, offer it a fresh command, and ask the oracles."""
        return Check(*self.lane.call(LaneServer.check))

    @property
    def lane(self) -> LaneClient:
        """The lane in which the experiment runs.

        Raises:
            HarnessError: The experiment has not been entered, or has been left.
        """
        if self._lane is None:
            raise HarnessError("use an Experiment in a with statement")
        return self._lane
