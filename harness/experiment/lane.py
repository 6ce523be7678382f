"""A lane's process: it owns a supervisor and a world, and runs one experiment at a time.

It is spawned; `harness.experiment.lane_client` is the owner's side. Replies go through a pipe, in
the order of the requests. A lane whose owner dies ends by itself and takes everything below it
along. If its supervisor or its world is lost it begins again below, and the experiment is run once
more.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
import traceback
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.experiment.confirmation import MOST_RUNS, Attempt, confirmed, same
from harness.experiment.judging import judge
from harness.experiment.lost import clear_up_after_the_dead, lost_in_warm_up, lost_result
from harness.experiment.protocol import RealSteps, run_experiment, settle
from harness.experiment.rig import Rig
from harness.experiment.sharing import SharedSteps, Sharing, longest_prefix
from harness.experiment.state_cache import StateCache
from harness.experiment.unjudged import doing_of_worker, unjudged
from harness.images.deletion import remove_tree
from harness.images.run_folder import control_image
from harness.images.scratch import remove_scratch, take_scratch
from harness.images.tree import move_tree
from harness.images.workspace import surroundings
from harness.model.errors import HarnessError, LeaveError, ProcessLostError
from harness.model.hash_seed import VARIABLE, hash_seed_of_forks
from harness.model.oracle import Evidence
from harness.model.result import Verdict
from harness.model.schedule import CONTROL
from harness.processes.family_mark import FamilyMark
from harness.processes.linux import adopt_orphans, die_of, die_with_parent, end_children
from harness.processes.pickling import portable
from harness.processes.supervisor import Supervisor, WarmUpError
from harness.scenario_fields import WorkloadError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from multiprocessing.connection import Connection
    from pathlib import Path

    from harness.experiment.state_cache import PrefixSnapshot
    from harness.images.workspace import Workspace
    from harness.model.result import ExperimentResult, Violation
    from harness.model.schedule import Schedule
    from harness.scenario import Scenario
    from harness.world.client import World


@dataclass(frozen=True, slots=True)
class Job:
    """An experiment to run.

    Attributes:
        scenario: Name of a scenario that the lane has prepared.
        schedule: The strikes.
        seed: The seed.
        digests: Whether the digests of the crash images are wanted.
        sharing: What of equal states may be run through once for several experiments.
        fresh: Whether every incarnation gets an interpreter of its own, even if its scenario does
            not ask for it.
        confirm: Whether what does not hold is run again before it is reported, and is `FLAKY` when
            it comes out differently. Without it, only what shared something is.
        watched: Whether the worker notes what it does outside of its workspace; in a control leg
            it does.
    """

    scenario: str
    schedule: Schedule
    seed: int
    digests: bool = False
    sharing: Sharing = Sharing.ALL
    fresh: bool = False
    confirm: bool = True
    watched: bool = False


_SHORTEST_S = 300.0
_WAITS = 10


def longest_experiment_s(scenarios: Iterable[Scenario]) -> float:
    """Return how long an experiment of some scenarios may take, in seconds.

    It may be run several times, and each run may wait for several steps, each up to its deadline.

    Args:
        scenarios: The scenarios.
    """
    longest_wait_s = max((scenario.deadline_s for scenario in scenarios), default=0.0)
    return max(_SHORTEST_S, MOST_RUNS * _WAITS * longest_wait_s)


class LaneServer:
    """What a lane does; `LaneClient.call` names one of these methods.

    Args:
        root: The lane's scratch directory.
        seed: The seed of what it runs.
    """

    def __init__(self, root: Path, seed: int = 0) -> None:
        self._root = root
        self._seed = seed
        # Always the same path, as a worker may have written it down; short, for a socket is in it.
        self._place = root / "now"
        hash_seed = hash_seed_of_forks(seed, os.environ)
        self._surroundings = {**surroundings(self._place), VARIABLE: hash_seed}
        self._supervisor = Supervisor(self._surroundings)
        self._world: World | None = None
        self._scenarios: dict[str, Scenario] = {}
        self._warm: set[str] = set()
        self._unready: dict[str, str] = {}
        self._rig: Rig | None = None
        self._known = root / "known"
        self._cache = StateCache(self._known)

    def prepare(self, scenario: Scenario) -> None:
        """Warm a scenario's worker, and get its world ready.

        If the worker cannot be warmed, that is what its experiments come to.
        """
        self._scenarios.setdefault(scenario.name, scenario)
        try:
            self._get_ready(scenario.name)
        except ProcessLostError:
            self._begin_again()
            try:
                self._get_ready(scenario.name)
            except ProcessLostError as error:
                self._begin_again()
                self._unready[scenario.name] = lost_in_warm_up(scenario.name, error)
            except (WarmUpError, WorkloadError):
                pass
        except (WarmUpError, WorkloadError):  # what its experiments come to
            pass

    def run(self, job: Job, keep: Path | None) -> ExperimentResult:
        """Run an experiment; keep the workspace of a broken one.

        What does not hold with the help of what is known is run again without: that one counts. If
        the supervisor or the world is lost meanwhile, all of it is done once more.
        """
        began = time.monotonic()
        try:
            result = self._confirmed(job, keep)
        except ProcessLostError as first:
            self._begin_again()
            try:
                result = self._confirmed(job, keep)
            except ProcessLostError as second:
                self._begin_again()
                result = lost_result(job.scenario, job.schedule, job.seed, first, second)
        return replace(result, seconds=time.monotonic() - began)

    def _confirmed(self, job: Job, keep: Path | None) -> ExperimentResult:
        try:
            self._get_ready(job.scenario)
        except (WarmUpError, WorkloadError) as error:
            return unjudged(job.scenario, job.schedule, job.seed, str(error))

        def run_once(*, alone: bool, repeats: ExperimentResult | None) -> Attempt:
            sharing = Sharing.NOTHING if alone else job.sharing
            return self._run(job, sharing, keep, repeats)

        if job.confirm:
            return confirmed(run_once)
        attempt = run_once(alone=False, repeats=None)
        if attempt.shared and attempt.result.verdict is not Verdict.HELD:
            attempt = run_once(alone=True, repeats=None)
        return attempt.result

    def _run(
        self, job: Job, sharing: Sharing, keep: Path | None, repeats: ExperimentResult | None
    ) -> Attempt:
        """Run an experiment once; keep what it left if it is the run that is reported."""
        prefix = None
        if Sharing.PREFIXES in sharing:
            prefix = longest_prefix(self._cache, job.scenario, job.seed, job.schedule)
        with _closed_in_the_end(
            self._new_rig(
                self._scenarios[job.scenario],
                job.seed,
                prefix,
                fresh=job.fresh,
                watched=job.watched or job.schedule == CONTROL,
            )
        ) as rig:
            steps = SharedSteps(rig, self._cache, sharing) if sharing else RealSteps(rig)
            try:
                result = run_experiment(rig, job.schedule, steps, digests=job.digests)
            except OSError as error:
                result = self._not_judged(job, error)
            self._check()
            if outside := rig.left_outside():
                result = replace(result, outside=outside)
            shared = isinstance(steps, SharedSteps) and steps.used
            if keep is None:
                return Attempt(result, shared)
            if result.verdict is Verdict.BROKEN:
                counts = not shared and not job.confirm
                if counts or (repeats is not None and same(repeats, result)):
                    _keep(rig.workspace, keep / result.fingerprint)
            elif job.schedule == CONTROL and result.verdict is Verdict.HELD:
                _keep_image(rig.incarnations[0].after.path, control_image(keep, job.scenario))
            return Attempt(result, shared)

    def _not_judged(self, job: Job, error: OSError) -> ExperimentResult:
        """Return what an experiment comes to in which a file of ours could not be used.

        Raises:
            OSError: It was not the worker that saw to it.
        """
        why = doing_of_worker(error, self._root, self._place)
        if not why:
            raise error
        return unjudged(job.scenario, job.schedule, job.seed, why)

    def open(self, scenario: str, seed: int) -> tuple[Path, Path]:
        """Open a rig to be used verb by verb."""
        self._get_ready(scenario)
        self._rig = self._new_rig(self._scenarios[scenario], seed)
        return self._rig.workspace.worker_dir, self._rig.workspace.world_dir

    def verb(self, name: str, arguments: tuple[object, ...]) -> object:
        """Call a verb of the open rig; `LaneClient.call_rig` names it."""
        return getattr(self._open_rig, name)(*arguments)

    def settle(self) -> None:
        """Let the open rig become quiet."""
        settle(self._open_rig)

    def check(self) -> tuple[Verdict, tuple[Violation, ...], str]:
        """Restart the worker of the open rig, which must have settled, and ask the oracles."""
        rig = self._open_rig
        *struck, recovered = rig.incarnations or (None,)
        if recovered is None:
            raise HarnessError("nothing has run that could be checked")
        before = rig.survivors()
        restart = RealSteps(rig).restart()
        evidence = Evidence(
            workload=rig.workload,
            struck=tuple(struck),
            recovered=recovered,
            restarted=restart.incarnations[-1],
            after_restart=restart.after_restart,
            survivors=tuple(dict.fromkeys((*before, *restart.survivors))),
        )
        return judge(rig.scenario.judges, evidence)

    def close(self) -> None:
        """Close the open rig."""
        rig, self._rig = self._rig, None
        if rig is not None:
            try:
                self._check()
                rig.close()
            except ProcessLostError:
                rig.abandon()
                self._begin_again()

    def end(self) -> None:
        """End everything below this process."""
        self._supervisor.end()
        if self._world is not None:
            with suppress(HarnessError):  # it is lost, or what it failed at has been told
                self._world.stop()
        # What a supervisor that was lost has left: it came up to this process.
        end_children()

    def _begin_again(self) -> None:
        """Replace what is below this process; workers are warmed again when they are needed."""
        self.end()
        remove_tree(self._place)
        self._supervisor = Supervisor(self._surroundings)
        self._world = None
        self._warm.clear()

    def _get_ready(self, name: str) -> None:
        """See that the world is there if it is needed, and that a scenario's worker is warm.

        Raises:
            WarmUpError: The worker cannot be warmed.
            WorkloadError: There is no workload for it.
        """
        scenario = self._scenarios[name]
        if name in self._unready:
            raise WarmUpError(self._unready[name])
        if scenario.services and self._world is None:
            # Not before it is needed: it imports an HTTP server.
            from harness.world.client import World  # noqa: PLC0415

            self._world = World.start()
        if name not in self._warm:
            try:
                with _closed_in_the_end(self._new_rig(scenario, self._seed)) as rig:
                    self._supervisor.prepare(name, scenario.worker, scenario.warm, rig.site(1))
            except WarmUpError as error:
                self._unready[name] = str(error)
                # It may have left anything in the process that forks, a thread say.
                self._begin_again()
                raise
            self._warm.add(name)

    def _check(self) -> None:
        """See that supervisor and world are there; without them nothing is evidence."""
        self._supervisor.check()
        if self._world is not None:
            self._world.check()

    @property
    def _open_rig(self) -> Rig:
        if self._rig is None:
            raise HarnessError("no experiment is open")
        return self._rig

    def _new_rig(
        self,
        scenario: Scenario,
        seed: int,
        prefix: PrefixSnapshot | None = None,
        *,
        fresh: bool = False,
        watched: bool = False,
    ) -> Rig:
        if not os.path.isdir(self._known):  # noqa: PTH112 - in every experiment
            # A worker has deleted more than its own.
            self._root.mkdir(parents=True, exist_ok=True)
            remove_tree(self._known)
            self._cache = StateCache(self._known)
        world = self._world if scenario.services else None
        return Rig(
            scenario,
            seed,
            self._place,
            self._supervisor,
            world,
            prefix,
            fresh=fresh or scenario.fresh,
            watched=watched,
        )


@contextmanager
def _closed_in_the_end(rig: Rig) -> Iterator[Rig]:
    """Close a rig after use, unless everything below is about to be ended as a whole.

    So it is when this process was told to leave: the supervisor may be waiting for a worker that
    hangs, and answers nothing. And so it is when supervisor or world is lost.
    """
    try:
        yield rig
    except (SystemExit, ProcessLostError):
        rig.abandon()
        raise
    except BaseException:
        rig.close()
        raise
    rig.close()


def serve(connection: Connection, root: Path, cpu: int | None, seed: int) -> None:
    """Be a lane until the owner closes the pipe or dies.

    Args:
        connection: The lane's end of the pipe.
        root: Directory in which a scratch directory for the workspaces is made.
        cpu: The core to stay on with everything below, or None for any.
        seed: The seed of what it runs.
    """
    os.setsid()  # a terminal's Ctrl-C is for the owner, not for us or our incarnations
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # its owner has held it back
    signal.signal(signal.SIGTERM, _leave)
    die_with_parent(os.getppid(), signal.SIGTERM)
    adopt_orphans()
    clear_up_after_the_dead(root)
    mark = FamilyMark(root)
    scratch = take_scratch(root)
    # Oracles read copies of databases; their scratch files belong with ours.
    tempfile.tempdir = str(scratch)
    try:
        server = LaneServer(scratch, seed)
    except OSError as error:  # the machine has no process left, or no file
        with suppress(OSError):
            failed = HarnessError(f"a lane cannot be started: {error}")
            connection.send_bytes(portable((False, failed)))
            remove_scratch(scratch)
        mark.remove()
        return
    told_to_leave = False
    try:
        try:
            while True:
                name, arguments = connection.recv()
                connection.send_bytes(portable(_answer(server, name, arguments)))
        except (EOFError, OSError):
            return
        finally:
            # The owner closes the pipe and sends SIGTERM: one may come while we act on the other.
            signal.signal(signal.SIGTERM, _stay)
    except SystemExit:
        told_to_leave = True
    finally:
        server.end()
        with suppress(OSError):  # what cannot be deleted is left to be seen
            remove_scratch(scratch)
        mark.remove()
    if told_to_leave:
        die_of(signal.SIGTERM)


def _leave(_number: int, _frame: object) -> None:
    signal.signal(signal.SIGTERM, _stay)
    raise LeaveError(0)


def _stay(_number: int, _frame: object) -> None:
    """Clear up to the end. Not SIG_IGN: Python complains of a signal that is on its way to it."""


def _answer(server: LaneServer, name: str, arguments: tuple[object, ...]) -> tuple[bool, object]:
    try:
        return True, getattr(server, name)(*arguments)
    except HarnessError as error:
        return False, error
    except OSError as error:
        # The machine's fault, a full disk say: there is nothing to be read in a traceback.
        return False, HarnessError(f"in a lane, {name} failed: {error}")
    except Exception:  # noqa: BLE001 - the owner is told; the lane stays usable
        return False, HarnessError(f"in a lane, {name} failed:\n{traceback.format_exc()}")


def _keep(workspace: Workspace, destination: Path) -> None:
    """Keep what a failure left: crash images, traces and output."""
    remove_tree(destination)
    destination.mkdir(parents=True)
    for directory in (workspace.images_dir, workspace.control_dir):
        move_tree(directory, destination / directory.name)


def _keep_image(image: Path, destination: Path) -> None:
    remove_tree(destination)
    destination.parent.mkdir(parents=True, exist_ok=True)
    move_tree(image, destination)
