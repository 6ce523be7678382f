"""The rig: workspace, incarnations and world of one experiment, inside a lane's process.

Here are the verbs of `harness.experiment.handle.Experiment`; that class forwards to this one
through the pipe of a lane.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.experiment.left_outside import LeftOutside
from harness.images.digest import PARTS, image_digest
from harness.images.metadata import metadata_digest
from harness.images.run_folder import end_image_name
from harness.images.workspace import Workspace, empty_image
from harness.model.bounds import MIB, bound_of_failure
from harness.model.errors import HarnessError
from harness.model.oracle import EndedIncarnation
from harness.model.quiet import describe_wait
from harness.model.site import Site
from harness.points.armed import StopOrder
from harness.processes.incarnation import Incarnation, State
from harness.processes.limits import limits_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.experiment.state_cache import PrefixSnapshot
    from harness.model.image import Image
    from harness.model.schedule import Moment
    from harness.model.trace import Death, Hit
    from harness.model.workload import Command
    from harness.processes.supervisor import Supervisor
    from harness.scenario import Scenario
    from harness.world.client import World

IDENTITY = "worker-1"


@dataclass(frozen=True, slots=True)
class Halt:
    """Why an incarnation came to a halt.

    Attributes:
        hit: The point where it stopped itself, or None when it died.
        death: How it died, or None when it stopped.
        quiet: Whether nothing is left to do: it stopped at its quiet point, or ended well.
        exceeded: The bound for which the harness ended it, in a sentence; empty if for none.
        bound: The bound that it seems to have reached when it died, in a sentence.
        in_child: Whether a child that it had left behind reached the moment that was waited for.
    """

    hit: Hit | None
    death: Death | None
    quiet: bool
    exceeded: str = ""
    bound: str = ""
    in_child: bool = False


class BoundReachedError(HarnessError):
    """An incarnation takes more of something than it may."""


class Rig:
    """One experiment in the making.

    Args:
        scenario: What is tried.
        seed: Source of everything random.
        path: Directory to create for the workspace; for a prefix, the same as at its time.
        supervisor: The supervisor of this lane, prepared for the scenario.
        world: The world's process, when the scenario has services.
        prefix: What to go on from, if it is not the start.
        fresh: Whether every incarnation gets an interpreter of its own.
        watched: Whether the incarnations note what they do outside of the workspace.
    """

    def __init__(  # noqa: PLR0917 - what an experiment is made of
        self,
        scenario: Scenario,
        seed: int,
        path: Path,
        supervisor: Supervisor,
        world: World | None,
        prefix: PrefixSnapshot | None = None,
        *,
        fresh: bool = False,
        watched: bool = False,
    ) -> None:
        self.scenario = scenario
        self.seed = seed
        self.workload = scenario.drawn_workload(seed)
        self.workspace = Workspace(path, scenario.bounds.workspace_mib)
        self._limits = limits_of(scenario.bounds)
        if prefix is not None:
            prefix.restore(self.workspace)
        self._fresh = fresh
        self._watched = watched
        self._outside = LeftOutside(supervisor.pid)
        self._supervisor = supervisor
        self._world = world
        self._offered: tuple[Command, ...] = self.workload.commands
        self._endpoint = ""
        if world is not None:
            self._endpoint = world.open(
                self.workspace.world_dir, scenario.services, self.workload, scenario.transport
            )
        self._incarnations: dict[int, Incarnation] = {}
        self._before: dict[int, Image] = {}
        begun = prefix.incarnations if prefix is not None else ()
        self._lives: dict[int, EndedIncarnation] = {life.number: life for life in begun}
        self._last_image = begun[-1].after if begun else empty_image(path.parent)
        self._unsaved: Image | None = None

    @property
    def incarnations(self) -> tuple[EndedIncarnation, ...]:
        """Every incarnation that has ended, in the order of their ends."""
        return tuple(self._lives.values())

    @property
    def alive(self) -> tuple[int, ...]:
        """Numbers of the incarnations that have not ended."""
        return tuple(n for n in self._incarnations if n not in self._lives)

    @property
    def next_number(self) -> int:
        """Number of the incarnation that would be started next."""
        return max((*self._incarnations, *self._lives), default=0) + 1

    @property
    def at_rest(self) -> bool:
        """Whether all that matters from here on is durable: nothing lives that could go on."""
        return not self.alive and not self._supervisor.has_children and not self._outside.appeared

    @property
    def last_image(self) -> Image:
        """The image of the last end of an incarnation; `save` makes it."""
        return self._last_image

    @property
    def durable(self) -> Image:
        """What is durable when nothing runs: the workspace itself, as long as it is in no image.

        What a running service of the world has put where is its own affair; its snapshot has all
        of it, so with a world it is always the image.
        """
        if self._world is not None:
            self.save()
        return self.workspace if self._unsaved is not None else self._last_image

    @property
    def has_services(self) -> bool:
        """Whether services of the world run."""
        return self._world is not None

    def state_digest(self, durable: Image) -> str:
        """Return the digest of all that a program which starts now can see of what is durable.

        Args:
            durable: An image of what is durable now, or the workspace itself; nothing runs.
        """
        # A running service has its files open; what they are like is its own affair.
        parts = [part for part in PARTS if part != "world" or not self.has_services]
        seen = metadata_digest(self.workspace.path, parts, self.workspace.since_ns)
        return f"{image_digest(durable)}-{seen}"

    def site(self, number: int, identity: str = IDENTITY) -> Site:
        """Return what the incarnation with this number is given."""
        return Site(
            worker_dir=self.workspace.worker_dir,
            world_dir=self.workspace.world_dir,
            endpoint=self._endpoint,
            identity=identity,
            incarnation=number,
            seed=self.seed,
            offered=self._offered,
        )

    def start(self, identity: str = "same") -> int:
        """Start an incarnation; it stands still.

        Args:
            identity: ``"same"`` for the worker's own identity, or another one.

        Returns:
            Its number, from 1.
        """
        number = self.next_number
        site = self.site(number, IDENTITY if identity == "same" else identity)
        self._before[number] = self._last_image
        self._incarnations[number] = Incarnation(
            self._supervisor,
            self.scenario.name,
            site,
            self.workspace.control_dir,
            self._limits,
            fresh=self._fresh,
            watched=self._watched,
        )
        return number

    def run_until(self, number: int, moment: Moment) -> Halt:
        """Let an incarnation run until a moment, until it is quiet, or until it dies."""
        stop = StopOrder(moment.label, moment.key, moment.value, moment.ordinal)
        self.save()
        self._incarnations[number].resume((stop, *self._quiet_stop))
        halt = self._wait(number, str(moment))
        hits = self._incarnations[number].trace.hits
        if any(hit.child and not hit.stop and hit.is_at(moment) for hit in hits):
            return replace(halt, in_child=True)
        return halt

    def run_until_quiet(self, number: int) -> Halt:
        """Let an incarnation run until nothing is left to do, or until it dies."""
        if self._incarnations[number].state is State.STOPPED:
            self.resume(number)
        return self._wait(number, describe_wait(self.scenario.quiet_at))

    def resume(self, number: int) -> None:
        """Let an incarnation go on, and do not wait for it; it stops again when it is quiet."""
        self.save()
        self._incarnations[number].resume(self._quiet_stop)

    def kill(self, number: int) -> Death:
        """Kill an incarnation, prove its death, and take the crash image."""
        incarnation = self._incarnations[number]
        death = incarnation.kill()
        if number not in self._lives:
            self._close(number, death)
        return death

    def offer(self, command: Command) -> None:
        """Offer one more command."""
        self.save()
        self._offered = (*self._offered, command)
        if self._world is not None:
            self._world.offer(command)

    def image(self, name: str) -> Image:
        """Take an image of what is durable now."""
        taken = self.workspace.new_image(name)
        self.workspace.copy_to(taken, self._snapshot)
        return taken

    def save(self) -> None:
        """Make the image of the last incarnation's end, before anything changes.

        It is put off until then, because the last image of all need not be a copy.
        """
        if self._unsaved is not None:
            image, self._unsaved = self._unsaved, None
            self.workspace.copy_to(image, self._snapshot)

    def save_for_good(self) -> None:
        """Do the same when nothing will touch the workspace any more."""
        if self._unsaved is not None:
            image, self._unsaved = self._unsaved, None
            self.workspace.move_to(image, self._snapshot)

    def survivors(self) -> tuple[str, ...]:
        """Return the processes that are left though every incarnation should be dead."""
        return self._supervisor.survivors()

    def left_outside(self) -> tuple[str, ...]:
        """Return what the worker has left outside of the workspace, as far as it is known."""
        noted = self._incarnations.values() if self._watched else ()
        return self._outside.found(each.outside_notes for each in noted)

    def output(self, number: int) -> str:
        """Return the end of what an incarnation wrote."""
        return self._incarnations[number].output()

    def abandon(self) -> None:
        """Delete what nobody else will: everything below the lane is about to be ended."""
        self._outside.clear()

    def close(self) -> None:
        """End everything and delete the workspace."""
        self._supervisor.clear()
        self._outside.clear()
        if self._world is not None:
            self._world.close_services()
        try:
            self.workspace.remove()
        except OSError:
            # Something that even its owner cannot delete, an immutable file say: it is left to be
            # seen, and out of the way of the next experiment.
            aside = tempfile.mkdtemp(prefix="left-", dir=self.workspace.path.parent)
            self.workspace.path.rename(f"{aside}/{self.workspace.path.name}")

    @property
    def _quiet_stop(self) -> tuple[StopOrder, ...]:
        return (StopOrder(self.scenario.quiet_at),) if self.scenario.quiet_at else ()

    def _wait(self, number: int, what: str) -> Halt:
        incarnation = self._incarnations[number]
        try:
            hit = incarnation.wait(what, self.scenario.deadline_s, self._look)
        except BoundReachedError as error:
            incarnation.kill_group()
            return Halt(None, self.kill(number), quiet=False, exceeded=str(error))
        if hit is not None:
            self._outside.look()
            return Halt(hit, None, quiet=hit.label == self.scenario.quiet_at)
        death = incarnation.kill()
        exceeded = bound = ""
        if incarnation.output_bytes > self.scenario.bounds.workspace_mib * MIB:
            exceeded = f"has ended, but {self.workspace.too_large}"
        elif not death.clean:
            bound = bound_of_failure(death, incarnation.output(), self.scenario.bounds)
        self._close(number, death)
        quiet = death.clean and not exceeded and not self.scenario.quiet_at
        return Halt(None, death, quiet, exceeded, bound)

    def _look(self) -> None:
        """See that what runs keeps to the bounds that the kernel does not keep."""
        most = self.scenario.bounds.processes * len(self.alive)
        if self._supervisor.has_more_than(most):
            raise BoundReachedError(
                f"has more than {most:,} processes below it, which is its bound"
                " (Scenario(bounds=Bounds(processes=...)) allows more)"
            )
        if excess := self.workspace.excess():
            raise BoundReachedError(f"was ended, as {excess}")

    @property
    def _snapshot(self) -> Callable[[Path], None] | None:
        return self._world.snapshot if self._world is not None else None

    def _close(self, number: int, death: Death) -> None:
        self.save()
        image = self._unsaved = self.workspace.new_image(end_image_name(number))
        trace = self._incarnations[number].trace
        self._lives[number] = EndedIncarnation(
            number, tuple(trace.hits), death, self._before[number], image, trace.left_out
        )
        self._last_image = image
        if any(self._incarnations[other].state is State.RUNNING for other in self.alive):
            self.save()
