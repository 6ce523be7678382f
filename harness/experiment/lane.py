"""A lane: a spawned process with a supervisor and a world of its own, and the way to it.

The owner talks to it through a pipe; replies come in the order of the requests. A lane whose owner
dies ends by itself and takes everything below it along.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
import traceback
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import multiprocess

from harness.experiment.rig import Rig
from harness.experiment.run_schedule import judge, run_experiment, settle, start_of
from harness.experiment.second_restart import Gathering
from harness.experiment.state_cache import StateCache
from harness.images.run_folder import control_image
from harness.model.errors import DeadlineError, HarnessError
from harness.model.result import Verdict
from harness.model.schedule import CONTROL, Schedule
from harness.processes.linux import die_with_parent
from harness.processes.pickling import portable
from harness.processes.scratch import sweep_scratch, take_scratch
from harness.processes.supervisor import Supervisor

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from pathlib import Path

    from harness.experiment.state_cache import PrefixSnapshot
    from harness.images.workspace import Workspace
    from harness.model.result import ExperimentResult, Violation
    from harness.scenario import Scenario
    from harness.world.client import World

_CALL_S = 300.0
_STOP_S = 10.0


@dataclass(frozen=True, slots=True)
class Job:
    """An experiment to run.

    Attributes:
        scenario: Name of a scenario that the lane has prepared.
        schedule: The strikes.
        seed: The seed.
        digests: Whether the digests of the crash images are wanted.
        share: Whether equal states may be run through once for several experiments
            (`harness.experiment.state_cache`).
        recover: Whether the recovery is run even if that from an equal crash image is known.
    """

    scenario: str
    schedule: Schedule
    seed: int
    digests: bool = False
    share: bool = True
    recover: bool = False


class _Bench:
    """What lives in the lane's process; every public method can be called through the pipe."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._supervisor = Supervisor(root)
        self._world: World | None = None
        self._scenarios: dict[str, Scenario] = {}
        self._rig: Rig | None = None
        self._known = StateCache(root / "known")

    def prepare(self, scenario: Scenario) -> None:
        """Warm a scenario's worker, and get its world ready."""
        if scenario.name in self._scenarios:
            return
        if scenario.services and self._world is None:
            # Not before it is needed: it imports an HTTP server.
            from harness.world.client import World  # noqa: PLC0415

            self._world = World.start()
        self._scenarios[scenario.name] = scenario
        rig = self._new_rig(scenario, 0)
        try:
            self._supervisor.prepare(scenario.name, scenario.worker, scenario.warm, rig.site(1))
        finally:
            rig.close()

    def run(self, job: Job, keep: Path | None) -> ExperimentResult:
        """Run an experiment; keep the workspace of a broken one.

        What is not held with the help of what is known is run again without: that one counts.
        """
        began = time.monotonic()
        result, counts = self._conduct(job, keep, self._known if job.share else None)
        if not counts:
            result, _ = self._conduct(job, keep, None)
        return replace(result, seconds=time.monotonic() - began)

    def _conduct(
        self, job: Job, keep: Path | None, known: StateCache | None
    ) -> tuple[ExperimentResult, bool]:
        """Return the result of an experiment, and whether it counts."""
        beginning = self._beginning(job, known) if known is not None else None
        rig = self._new_rig(self._scenarios[job.scenario], job.seed, beginning)
        try:
            gathering = Gathering(rig, known)
            result = run_experiment(
                rig, job.schedule, gathering, digests=job.digests, recover=job.recover
            )
            if gathering.used and result.verdict is not Verdict.HELD:
                return result, False
            if keep is not None and result.verdict is Verdict.BROKEN:
                _keep(rig.workspace, keep / result.fingerprint)
            elif keep is not None and job.schedule == CONTROL and result.verdict is Verdict.HELD:
                _keep_image(rig.incarnations[0].after.path, control_image(keep, job.scenario))
            return result, True
        finally:
            rig.close()

    def _beginning(self, job: Job, known: StateCache) -> PrefixSnapshot | None:
        """Find the longest beginning of a schedule that is known; its last strike is its own."""
        for length in range(len(job.schedule.incarnations) - 1, 0, -1):
            start = Schedule(job.schedule.incarnations[:length])
            if found := known.beginnings.find(start_of(job.scenario, job.seed, start)):
                return found
        return None

    def open(self, scenario: str, seed: int) -> tuple[Path, Path]:
        """Open a rig to be used verb by verb."""
        self._rig = self._new_rig(self._scenarios[scenario], seed)
        return self._rig.workspace.worker_dir, self._rig.workspace.world_dir

    def verb(self, name: str, *arguments: object) -> object:
        """Call a verb of the open rig."""
        return getattr(self._the_rig, name)(*arguments)

    def settle(self) -> None:
        """Let the open rig become quiet."""
        settle(self._the_rig)

    def check(self) -> tuple[Verdict, tuple[Violation, ...], str]:
        """Judge the open rig, which must have settled."""
        return judge(self._the_rig.scenario.oracles, Gathering(self._the_rig).evidence())

    def close(self) -> None:
        """Close the open rig."""
        if self._rig is not None:
            self._rig.close()
            self._rig = None

    def end(self) -> None:
        """End everything below this process."""
        self._supervisor.end()
        if self._world is not None:
            self._world.stop()

    @property
    def _the_rig(self) -> Rig:
        if self._rig is None:
            raise HarnessError("no experiment is open")
        return self._rig

    def _new_rig(
        self, scenario: Scenario, seed: int, beginning: PrefixSnapshot | None = None
    ) -> Rig:
        world = self._world if scenario.services else None
        # Always the same path, as a worker may have written it down; short, for a socket is in it.
        path = self._root / "now"
        return Rig(scenario, seed, path, self._supervisor, world, beginning)


def serve(connection: Connection, root: Path, cpu: int | None) -> None:
    """Be a lane until the owner closes the pipe or dies.

    Args:
        connection: The lane's end of the pipe.
        root: Directory in which a scratch directory for the workspaces is made.
        cpu: The core to stay on with everything below, or None for any.
    """
    os.setsid()  # a terminal's Ctrl-C is for the owner, not for us or our incarnations
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    die_with_parent(os.getppid(), signal.SIGTERM)
    sweep_scratch(root)
    scratch = take_scratch(root)
    # Oracles read copies of databases; their scratch files belong with ours.
    tempfile.tempdir = str(scratch)
    bench = _Bench(scratch)
    try:
        try:
            while True:
                name, arguments = connection.recv()
                connection.send_bytes(portable(_answer(bench, name, arguments)))
        except (EOFError, OSError):
            return
        finally:
            # The owner closes the pipe and sends SIGTERM: one may come while we act on the other.
            signal.signal(signal.SIGTERM, _stay)
    finally:
        bench.end()
        shutil.rmtree(scratch, ignore_errors=True)


def _leave(_number: int, _frame: object) -> None:
    signal.signal(signal.SIGTERM, _stay)
    raise SystemExit(0)


def _stay(_number: int, _frame: object) -> None:
    """Clear up to the end. Not SIG_IGN: Python complains of a signal that is on its way to it."""


def _answer(bench: _Bench, name: str, arguments: tuple[object, ...]) -> tuple[bool, object]:
    try:
        return True, getattr(bench, name)(*arguments)
    except HarnessError as error:
        return False, error
    except OSError as error:
        # The machine's fault, a full disk say: there is nothing to be read in a traceback.
        return False, HarnessError(f"in a lane, {name} failed: {error}")
    except Exception:  # noqa: BLE001 - the owner is told; the lane stays usable
        return False, HarnessError(f"in a lane, {name} failed:\n{traceback.format_exc()}")


def _keep(workspace: Workspace, destination: Path) -> None:
    """Keep what a failure left: crash images, traces and output."""
    shutil.rmtree(destination, ignore_errors=True)
    destination.mkdir(parents=True)
    for directory in (workspace.images_dir, workspace.control_dir):
        shutil.move(directory, destination / directory.name)


def _keep_image(image: Path, destination: Path) -> None:
    shutil.rmtree(destination, ignore_errors=True)
    destination.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(image, destination)


class Lane:
    """The owner's side of a lane.

    Args:
        root: Directory for workspaces; see `harness.images.workspace.default_root`.
        cpu: The core to stay on. A fork and its parent that share one are several times faster
            than on two, because nothing has to be moved between caches. None leaves it open.
    """

    def __init__(self, root: Path, cpu: int | None = None) -> None:
        context = multiprocess.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, root, cpu), name="lane")
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        """Pid of the lane's process."""
        return cast("int", self._process.pid)

    def send(self, name: str, *arguments: object) -> None:
        """Send a request without waiting for the reply."""
        self.connection.send_bytes(portable((name, arguments)))

    def receive(self, deadline_s: float = _CALL_S) -> object:
        """Wait for the reply to the oldest request that has none yet.

        Raises:
            HarnessError: What the lane answered, or that it is gone.
            DeadlineError: No reply in time.
        """
        if not self.connection.poll(deadline_s):
            raise DeadlineError("a reply of a lane", deadline_s)
        try:
            good, value = self.connection.recv()
        except (EOFError, OSError):
            raise HarnessError(f"lane {self.pid} ended unexpectedly") from None
        if not good:
            raise cast("HarnessError", value)
        return value

    def call(self, name: str, *arguments: object) -> object:
        """Send a request and wait for its reply."""
        self.send(name, *arguments)
        return self.receive()

    def stop(self) -> None:
        """End the lane and everything below it, whatever it is doing."""
        self.connection.close()
        self._process.terminate()
        self._process.join(_STOP_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(_STOP_S)
        self._process.close()
