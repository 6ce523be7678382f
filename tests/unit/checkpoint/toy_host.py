"""The smallest host: it plans, runs steps by writing them down, and commits after each one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from worker_under_test.checkpoint import (
    Committer,
    Plan,
    SeqGate,
    Snapshot,
    build_plan,
    load_if_any,
)
from worker_under_test.checkpoint.stores.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_under_test.checkpoint import StepDef

RUN = "run"


@dataclass
class World:
    """What outlives an incarnation: the store, and the effects in the order they happened."""

    store: MemoryStore = field(default_factory=MemoryStore)
    effects: list[str] = field(default_factory=list)

    async def put(self, done: Sequence[str], status: str = "running", seq: int = 1) -> None:
        """Store a snapshot as an earlier incarnation would have left it."""
        await self.store.save(Snapshot(RUN, seq, status, done))


async def live(
    world: World,
    graph: Sequence[StepDef],
    *,
    commits: int | None = None,
    launder: bool = False,
    close: bool = False,
) -> Plan:
    """Live one incarnation and return the plan it began with.

    Args:
        world: What outlives it.
        graph: Its graph.
        commits: It dies after a step, before it could commit more often than this; None: it lives.
        launder: It is the wrong host that builds on the loaded ``done``.
        close: It commits a terminal status at the end.
    """
    committer = Committer(SeqGate(), world.store)
    await committer.seed_from_store(RUN)
    snapshot = await load_if_any(world.store, RUN)
    plan = build_plan(graph, snapshot)
    if plan.blocked:
        return plan
    loaded = snapshot.done if snapshot else ()
    known = {step.id for step in graph}
    done = [*plan.skip, *(step_id for step_id in loaded if launder or step_id not in known)]
    seq = snapshot.seq if snapshot else 0
    for number, step_id in enumerate(plan.run):
        world.effects.append(step_id)
        if number == commits:
            return plan
        done.append(step_id)
        seq += 1
        await committer.commit(Snapshot(RUN, seq, "running", done))
    if close:
        await committer.commit(Snapshot(RUN, seq + 1, "completed", done))
    return plan
