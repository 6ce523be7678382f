"""The reference worker and its coordinator: what must hold at every moment."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING, cast

from faker import Faker

from harness.model.workload import Command, ReplyLost, Workload
from harness.oracles.effects import NoEffectTwice, read_ledger
from harness.oracles.mailbox.agreement import EventsOnce, InboxOutboxConsistent
from harness.oracles.mailbox.artifacts import ArtifactsWhole, FinishedPartsReused
from harness.oracles.mailbox.checkpoints import CheckpointsAdvance
from harness.oracles.mailbox.commands import CommandsEnd, FreshGoesThrough
from harness.oracles.mailbox.decisions import DecisionsRight, RestartChangesNothing
from harness.oracles.processes import NoSurvivors
from harness.scenario import HOLDS, Pin, Scenario
from harness.world.coordinator.facts import read_facts
from harness.world.coordinator.service import Coordinator
from scenarios.reference_books import ARTIFACTS, read_books, worker_view
from scenarios.reference_worker import QUIET_AT, reference_worker, warm_up, worker_with

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from harness.model.canonical_json import JsonObject
    from harness.model.site import Site
    from harness.oracles.mailbox.worker_state import AttemptRow
    from worker_under_test.main import Parts


@cache
def draw_workload(seed: int) -> Workload:
    """Draw three commands at once, one of them delivered twice, and two replies that are lost."""
    fake = Faker()
    fake.seed_instance(seed)
    commands = (
        compute("c1", fake),
        _export("c2", fake, parts=2),
        control("c3", "cleanup"),
    )
    return Workload(
        commands=commands,
        fresh=compute("fresh", fake),
        twice=frozenset({fake.random_element([c.command_id for c in commands])}),
        lost=(
            ReplyLost("ack", fake.random_element([c.command_id for c in commands])),
            ReplyLost("event", fake.random_element([c.command_id for c in commands])),
        ),
    )


def control(command_id: str, name: str, payload: JsonObject | None = None) -> Command:
    """Return an order to the worker itself."""
    body: JsonObject = {"capability": f"control.{name}", "version": 1, "payload": payload or {}}
    return Command(command_id, body)


def compute(command_id: str, fake: Faker) -> Command:
    """Draw a command for pure work."""
    payload: JsonObject = {"seed": fake.uuid4(), "rounds": fake.random_int(2, 9)}
    return Command(command_id, {"capability": "compute", "version": 1, "payload": payload})


def _export(command_id: str, fake: Faker, parts: int) -> Command:
    texts: list[JsonObject] = [
        {"name": f"part-{n}.txt", "text": fake.paragraph()} for n in range(1, parts + 1)
    ]
    payload: JsonObject = {"name": fake.slug(), "parts": texts}
    return Command(command_id, {"capability": "export", "version": 1, "payload": payload})


def expected_files(command: Command) -> Mapping[str, str]:
    """Work out the files that a command asks for: their paths and checksums."""
    body = cast("Mapping[str, object]", command.body)
    if body["capability"] != "export":
        return {}
    parts = cast("Mapping[str, list[dict[str, str]]]", body["payload"])["parts"]
    return {
        f"{command.command_id}/{part['name']}": hashlib.sha256(part["text"].encode()).hexdigest()
        for part in parts
    }


def right_decision(attempt: AttemptRow) -> str:
    """Say what recovery must decide (REC-01 to REC-04, REC-14)."""
    if attempt.cancelled:  # Neither capability does anything outside: ADM-10 lets it be so.
        return "cancel"
    if attempt.state == "PENDING":
        return "start"
    by_policy = {
        "compute/1": "recompute",
        "export/1": "resume",
        "control.cleanup/1": "recompute",
    }
    return by_policy.get(attempt.capability, "unknown")


def world_view(world_dir: Path) -> object:
    """Return what a second restart must leave alone outside."""
    facts = read_facts(world_dir)
    return read_ledger(world_dir), facts.events, facts.acks


POINTS = (
    "worker_under_test.adapters",
    "worker_under_test.application",
    "worker_under_test.capabilities.compute",
    "worker_under_test.capabilities.export",
)
"""Packages and modules that declare the points of the runtime and of what it runs here."""

GROUP = "reference"
"""The scenarios that reach those points together."""

ORACLES = (
    CommandsEnd(),
    InboxOutboxConsistent(read_books),
    NoEffectTwice(),
    EventsOnce(),
    CheckpointsAdvance(read_books),
    ArtifactsWhole(read_books, ARTIFACTS, expected_files, lambda name: name.endswith(".tmp")),
    FinishedPartsReused(read_books, ARTIFACTS, expected_files, "artifact.write.before"),
    DecisionsRight(read_books, right_decision),
    FreshGoesThrough(read_books),
    RestartChangesNothing(worker_view, world_view),
    NoSurvivors(),
)


def variant(
    name: str,
    parts: Parts,
    pin: Pin,
    worker: Callable[[Site], None] | None = None,
    *,
    strike: tuple[str, ...],
) -> Scenario:
    """Return the scenario of a worker that differs from the reference worker in some parts.

    Args:
        name: Name of the scenario.
        parts: The parts in which it differs.
        pin: What must be caught.
        worker: The whole worker, if it differs in more than that.
        strike: The labels around its fault: a known-bad worker is there to be caught, not mapped.
    """
    return Scenario(
        name=name,
        worker=worker or worker_with(parts),
        workload=draw_workload,
        oracles=ORACLES,
        pin=pin,
        points=POINTS,
        must_reach_all=False,
        services=(Coordinator.from_environment,),
        quiet_at=QUIET_AT,
        strike=strike,
    )


REFERENCE = Scenario(
    name="reference",
    worker=reference_worker,
    workload=draw_workload,
    oracles=ORACLES,
    pin=HOLDS,
    points=POINTS,
    together=GROUP,
    services=(Coordinator.from_environment,),
    quiet_at=QUIET_AT,
    warm=warm_up,
)
