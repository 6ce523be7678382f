"""Known bad (M-19): that the worker is draining is known in memory only.

A worker that is killed after it saved the drain comes back and takes work in. Caught by
``draining-admits-nothing``: the inbox has work between the order to drain and the one that ends it
(INV-14, DRN-01).

The drain is the first command here, so that the work that was turned away waits at the coordinator
until the drain ends: whenever the worker is killed in between, it is offered to one that forgot.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from faker import Faker

from harness.model.workload import ReplyLost, Workload
from harness.scenario import broken_by
from scenarios.reference import compute, control
from scenarios.reference_control import control_variant
from worker_under_test.adapters.sqlite_store import SqliteStore
from worker_under_test.domain.order import Directives
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from worker_under_test.settings import Settings


class Forgetful(SqliteStore):
    """Remembers no directives from an earlier life."""

    async def directives(self) -> Directives:
        """Return what a new worker begins with."""
        return Directives()


def forgetful(settings: Settings) -> Forgetful:
    """Make the store."""
    return Forgetful(settings.root / "worker.db", init=settings.init)


@cache
def draw_workload(seed: int) -> Workload:
    """Draw a command for work that comes while the worker drains, and the end of the drain."""
    fake = Faker()
    fake.seed_instance(seed)
    return Workload(
        commands=(control("d", "drain"), compute("w1", fake), control("u", "undrain")),
        fresh=compute("fresh", fake),
        twice=frozenset({fake.random_element(["d", "w1", "u"])}),
        lost=(ReplyLost("ack", fake.random_element(["w1", "u"])),),
    )


DRAIN_IN_MEMORY = replace(
    control_variant(
        "drain-in-memory",
        Parts(store=forgetful),
        broken_by("draining-admits-nothing"),
        # Each is struck when it is first reached, which is on behalf of the drain.
        strike=(
            "order.apply.before",
            "order.apply.after",
            "ack.send.before",
            "ack.send.after",
        ),
    ),
    workload=draw_workload,
)
