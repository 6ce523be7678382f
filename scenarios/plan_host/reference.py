"""The plan host as scenarios: the right one, on a store that compares and on one that does not."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from harness.deterministic_asyncio import Scheduler
from harness.images.digest import opened
from harness.oracles.mailbox.decisions import RestartChangesNothing
from harness.oracles.mailbox.worker_state import SnapshotRow, WorkerState
from harness.oracles.plans.plan import PlanRight
from harness.oracles.plans.snapshots import LandedRunsOnce, RunsEnd, SnapshotsAdvance
from harness.oracles.plans.step_evidence import StepSource
from harness.oracles.processes import NoSurvivors
from harness.scenario import HOLDS, Pin, Scenario
from scenarios.plan_host.fault_plan import BothStores, Plain, PlannedFaults
from scenarios.plan_host.host import DATABASE, PlanHost
from scenarios.plan_host.requested_graphs import requested_graphs, requesting, run
from scenarios.snapshot_rows import read_snapshots

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.model.oracle import Oracle
    from harness.model.site import Site
    from harness.model.workload import Workload
    from worker_under_test.checkpoint import StoreCAS

TABLE = "runs.json"
"""Where a host keeps its snapshots that does not use SQLite."""

POINTS = ("worker_under_test.checkpoint", "scenarios.plan_host.host")


def read_books(worker_dir: Path) -> WorkerState:
    """Read the snapshots of a plan host."""
    if (table := worker_dir / TABLE).exists():
        rows = json.loads(table.read_text(encoding="utf-8"))
        return WorkerState(snapshots=tuple(_row(*row) for row in rows))
    if not (worker_dir / DATABASE).exists():
        return WorkerState()
    with opened(worker_dir / DATABASE) as database:
        return WorkerState(snapshots=read_snapshots(database))


def _row(run_id: str, seq: int, status: str, done: list[str]) -> SnapshotRow:
    return SnapshotRow(run_id, seq, status, tuple(done))


SOURCE = StepSource(
    read_books, requested_graphs, starts="task.run.before", landed="task.commit.after"
)

ORACLES: tuple[Oracle, ...] = (
    PlanRight(SOURCE),
    SnapshotsAdvance(SOURCE),
    RunsEnd(SOURCE),
    LandedRunsOnce(SOURCE),
    RestartChangesNothing(read_books),
    NoSurvivors(),
)


def live(site: Site, host: type[PlanHost], faults: PlannedFaults) -> None:
    """Live as a plan host until every run has ended.

    Args:
        site: Where it lives.
        host: Its class.
        faults: What goes slow and what fails.
    """
    scheduler = Scheduler(f"{site.seed}/{site.incarnation}")
    scheduler.run(host(site, faults, scheduler).live)


def plan_host(
    name: str,
    host: type[PlanHost],
    workload: Callable[[int], Workload],
    faults: PlannedFaults,
    pin: Pin = HOLDS,
    *,
    oracles: tuple[Oracle, ...] = ORACLES,
    strike: tuple[str, ...] = (),
) -> Scenario:
    """Return a scenario of a plan host.

    Args:
        name: Its name.
        host: The host's class.
        workload: What it is asked.
        faults: What goes slow and what fails.
        pin: The expected outcome.
        oracles: What must hold.
        strike: Labels to strike; empty for all.
    """
    return Scenario(
        name=name,
        worker=partial(live, host=host, faults=faults),
        workload=workload,
        oracles=oracles,
        pin=pin,
        points=POINTS,
        must_reach_all=pin == HOLDS and not strike,
        strike=strike,
    )


class PlainHost(PlanHost):
    """A host whose store saves whatever it is given: all depends on gate and committer."""

    def cas(self, store: BothStores) -> StoreCAS:
        """Put a store without comparison in the place of one with."""
        return Plain(store)


UNLUCKY = PlannedFaults(
    slow=frozenset("e"),
    late=frozenset("b"),
    twice=frozenset("cd"),
    busy=frozenset("d"),
    busy_loads=2,
)
"""Everything at once: slow work, a commit that begins late, two that are repeated, a busy store."""

DIAMOND = "a b<a c<a d<c e<b,d"
"""A fan-out whose one branch has a second step, and a join."""

WORK = requesting(run("r1", DIAMOND), run("r2", "a b! c"))

PLAN_HOST = plan_host("plan-host", PlanHost, WORK, UNLUCKY)

PLAN_HOST_PLAIN = plan_host(
    "plan-host-plain",
    PlainHost,
    WORK,
    UNLUCKY,
    strike=(
        "task.run.before",
        "task.run.after",
        "task.commit.after",
        "late.commit.before",
        "late.commit.after",
        "resume.commit.after",
        "snapshot.accept.after",
        "snapshot.release.before",
        "gate.seed.before",
    ),
)

PLAN_HOST_CHANGED = plan_host(
    "plan-host-changed",
    PlanHost,
    # After a crash another graph is in force: a step is put in, one is added at the end,
    # one gets a dependency that is not there. Such a run may have no right end, so its end is not
    # judged.
    requesting(
        run("r1", "a c d", "a b c d"),
        run("r2", "a b", "a b x"),
        run("r3", "a! b c", "a! b<a,ghost c!"),
    ),
    PlannedFaults(slow=frozenset("ad")),
    oracles=(PlanRight(SOURCE), SnapshotsAdvance(SOURCE)),
    strike=(
        "task.run.after",
        "task.commit.after",
        "run.end.before",
        "resume.commit.after",
        "next.commit.after",
        "slow.run.before",
    ),
)
