"""The capability ``workflow`` in the reference worker: resume, not replay, at every moment."""

from __future__ import annotations

import sqlite3
from functools import cache, partial
from typing import TYPE_CHECKING, cast

from faker import Faker

from harness.model.workload import Command, Workload
from harness.oracles.effects import NoEffectTwice
from harness.oracles.mailbox.agreement import EventsOnce, InboxOutboxConsistent
from harness.oracles.mailbox.checkpoints import CheckpointsAdvance
from harness.oracles.mailbox.commands import CommandsEnd, FreshGoesThrough
from harness.oracles.mailbox.decisions import DecisionsRight, RestartChangesNothing
from harness.oracles.plans.plan import PlanRight
from harness.oracles.plans.snapshots import LandedRunsOnce, RunsEnd, SnapshotsAdvance
from harness.oracles.plans.step_evidence import StepSource
from harness.oracles.processes import NoSurvivors
from harness.scenario import HOLDS, Pin, Scenario
from harness.world.coordinator.service import Coordinator
from harness.world.services.effects import REPEAT, EffectsService
from scenarios.plan_host.requested_graphs import rows_of, steps
from scenarios.reference import world_view
from scenarios.reference_books import read_books, worker_view
from scenarios.reference_worker import QUIET_AT, warm_up, worker_with
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from harness.model.canonical_json import JsonObject
    from harness.oracles.mailbox.worker_state import AttemptRow, GraphRow
    from worker_under_test.adapters.sqlite_store import SqliteStore
    from worker_under_test.checkpoint import Snapshot
    from worker_under_test.ports.local_store import LocalStore
    from worker_under_test.ports.step_store import StepResult, StepStore

BUSY_STEP = "c"
"""The step whose first record in each life fails, so that its number has to be released."""


class BusyOnce:
    """A `StepStore` that is busy the first time that it is to record a certain step.

    Args:
        inner: The store behind it.
    """

    def __init__(self, inner: StepStore) -> None:
        self._inner = inner
        self._busy = True

    async def load(self, run_id: str) -> Snapshot:
        """Load."""
        return await self._inner.load(run_id)

    async def save_step(self, snapshot: Snapshot, result: StepResult | None) -> None:
        """Save, or fail once."""
        if self._busy and result is not None and result.step_id == BUSY_STEP:
            self._busy = False
            raise sqlite3.OperationalError("database is locked")
        await self._inner.save_step(snapshot, result)


def busy_once(store: LocalStore) -> StepStore:
    """Make the store of steps."""
    return BusyOnce(cast("SqliteStore", store).steps)


PARTS = Parts(steps=busy_once)


@cache
def draw_workload(seed: int) -> Workload:
    """Draw a chain, and a fan-out that a step joins by its position."""
    fake = Faker()
    fake.seed_instance(seed)
    return Workload(
        commands=(_workflow("c1", "a b", fake), _workflow("c2", "a! b<a c<a d", fake)),
        fresh=_workflow("fresh", "a b<a", fake),
    )


def _workflow(command_id: str, graph: str, fake: Faker) -> Command:
    asked: list[JsonObject] = [
        {
            "id": cast("str", step["id"]),
            "label": fake.bs(),
            "depends_on": step["depends_on"],
            "isolated": step["isolated"],
        }
        for step in steps(graph)
    ]
    body: JsonObject = {"capability": "workflow", "version": 1, "payload": {"steps": asked}}
    return Command(command_id, body)


def requested_graphs(workload: Workload, _crashes: int) -> tuple[GraphRow, ...]:
    """Return the graphs of the commands; a command's graph never changes."""
    return tuple(
        rows_of(command.command_id, cast("dict[str, JsonObject]", command.body)["payload"]["steps"])
        for command in (*workload.commands, workload.fresh)
    )


def right_decision(attempt: AttemptRow) -> str:
    """Say what recovery must decide: what never began is started, the rest goes by its plan."""
    return "start" if attempt.state == "PENDING" else "resume"


SOURCE = StepSource(
    read_books,
    requested_graphs,
    kinds=frozenset({"step", f"step{REPEAT}"}),
    starts="step.run.before",
    landed="step.record.after",
)

STRIKE = (
    "workflow.plan.after",
    "step.run.before",
    "step.run.after",
    "step.record.after",
    "workflow.close.before",
    "workflow.close.after",
    "gate.seed.before",
    "snapshot.accept.after",
    "snapshot.save.mid",
    "steps.save.after",
    "snapshot.release.before",
    "snapshot.commit.after",
)
"""The points of capability and kernel; the scenario ``reference`` strikes those of the runtime."""

POINTS = (
    "worker_under_test.application",
    "worker_under_test.adapters",
    "worker_under_test.capabilities",
    "worker_under_test.checkpoint.committer",
    "worker_under_test.checkpoint.stores.sqlite_table",
)

ORACLES = (
    CommandsEnd(),
    InboxOutboxConsistent(read_books),
    NoEffectTwice(frozenset({"step", "command_end"})),
    EventsOnce(),
    CheckpointsAdvance(read_books),
    DecisionsRight(read_books, right_decision),
    PlanRight(SOURCE),
    SnapshotsAdvance(SOURCE),
    RunsEnd(SOURCE),
    LandedRunsOnce(SOURCE),
    FreshGoesThrough(read_books),
    RestartChangesNothing(worker_view, world_view),
    NoSurvivors(),
)


def workflow(name: str, parts: Parts, pin: Pin, strike: tuple[str, ...] = STRIKE) -> Scenario:
    """Return the scenario of a worker that runs workflows.

    Args:
        name: Its name.
        parts: How the worker's parts are made.
        pin: The expected outcome.
        strike: Labels to strike.
    """
    return Scenario(
        name=name,
        worker=worker_with(parts),
        workload=draw_workload,
        oracles=ORACLES,
        pin=pin,
        points=POINTS,
        must_reach_all=pin == HOLDS,
        services=(Coordinator.from_environment, EffectsService),
        quiet_at=QUIET_AT,
        warm=partial(warm_up, parts=parts),
        strike=strike,
    )


WORKFLOW = workflow("workflow", PARTS, HOLDS)
