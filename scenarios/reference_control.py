"""The reference worker under orders: one attempt at a time, a cancel, and a drain with its end."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, cast

from faker import Faker

from harness.model.workload import Command, ReplyLost, Workload
from harness.oracles.mailbox.admission import CancelHonoured, DrainingAdmitsNothing, WithinCapacity
from harness.scenario import HOLDS
from scenarios.reference import GROUP, ORACLES, compute, control, variant
from scenarios.reference_books import read_books
from scenarios.reference_worker import warm_up, worker_with
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.oracles.mailbox.worker_state import AttemptRow
    from harness.scenario import Pin, Scenario

CAPACITY = 1


@cache
def draw_workload(seed: int) -> Workload:
    """Draw two commands for a worker with room for one, and three orders."""
    fake = Faker()
    fake.seed_instance(seed)
    return Workload(
        commands=(
            compute("w1", fake),
            compute("w2", fake),
            control("x", "cancel", {"command_id": fake.random_element(["w1", "w2"])}),
            control("d", "drain"),
            control("u", "undrain"),
        ),
        fresh=compute("fresh", fake),
        twice=frozenset({fake.random_element(["w1", "d"])}),
        lost=(ReplyLost("ack", fake.random_element(["x", "d", "u"])),),
    )


def _body(command: Command) -> Mapping[str, object]:
    return cast("Mapping[str, object]", command.body)


def drains(command: Command) -> bool | None:
    """Tell whether a command starts draining or ends it."""
    name = str(_body(command)["capability"])
    if not name.startswith("control."):
        raise LookupError(name)
    return {"control.drain": True, "control.undrain": False}.get(name)


def cancels(command: Command) -> str | None:
    """Return what a command cancels."""
    if _body(command)["capability"] != "control.cancel":
        return None
    return str(cast("Mapping[str, str]", _body(command)["payload"])["command_id"])


def takes_room(attempt: AttemptRow) -> bool:
    """Tell whether an attempt counts against the capacity."""
    return not attempt.capability.startswith("control.")


CONTROL_ORACLES = (
    *ORACLES,
    DrainingAdmitsNothing(read_books, drains),
    WithinCapacity(read_books, CAPACITY, takes_room),
    CancelHonoured(cancels),
)


def control_variant(
    name: str, parts: Parts | None, pin: Pin, *, strike: tuple[str, ...] = ()
) -> Scenario:
    """Return the scenario of a worker under orders that differs in some parts.

    Args:
        name: Name of the scenario.
        parts: The parts in which it differs.
        pin: What must be caught.
        strike: The labels to strike; empty for all.
    """
    worker = worker_with(parts, CAPACITY)
    return replace(
        variant(name, parts or Parts(), HOLDS, worker, strike=strike),
        workload=draw_workload,
        oracles=CONTROL_ORACLES,
        pin=pin,
    )


REFERENCE_CONTROL = replace(
    control_variant("reference-control", None, HOLDS),
    must_reach_all=True,
    together=GROUP,
    warm=partial(warm_up, capacity=CAPACITY),
)
