"""A second planner, slow and plain, to compare the real one with.

It is written from the requirements alone: predecessor sets, repetition until nothing
changes, and a full table of who waits for whom through others. It shares no code with the real one
but the declaration of a step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_under_test.checkpoint import Snapshot, StepDef

ENDED = ("completed", "failed", "cancelled")


class NaivePlan(NamedTuple):
    """Skip, run, and anomalies as pairs of kind and step."""

    skip: list[str]
    run: list[str]
    anomalies: list[tuple[str, str]]


def naive_plan(graph: Sequence[StepDef], snapshot: Snapshot | None) -> NaivePlan:
    """Plan by the letter of the requirements."""
    kept, anomalies = _kept(graph)
    ids = [step.id for step in kept]
    declared = {step.id: set(step.depends_on or ()) for step in kept}
    implied = {
        step.id: set() if step.depends_on or step.isolated else set(ids[:place])
        for place, step in enumerate(kept)
    }
    trusted: set[str] = set()
    if snapshot is not None:
        done = list(snapshot.done)
        anomalies += [
            ("done_not_in_graph", step_id)
            for place, step_id in enumerate(done)
            if step_id not in ids and step_id not in done[:place]
        ]
        trusted = _trusted({s: declared[s] | implied[s] for s in ids if s in done})
        anomalies += [
            ("done_out_of_order", step_id)
            for step_id in ids
            if step_id in done and step_id not in trusted
        ]
    skip = [step_id for step_id in ids if step_id in trusted]
    run = _ordered([step_id for step_id in ids if step_id not in trusted], declared, implied)
    if snapshot is not None and snapshot.status in ENDED and run:
        return NaivePlan([], [], [*anomalies, ("complete_with_pending", "")])
    return NaivePlan(skip, run, anomalies)


def _kept(graph: Sequence[StepDef]) -> tuple[list[StepDef], list[tuple[str, str]]]:
    kept: list[StepDef] = []
    anomalies: list[tuple[str, str]] = []
    for step in graph:
        if step.id == "":
            anomalies.append(("empty_step_id", ""))
        elif step.id in [other.id for other in kept]:
            anomalies.append(("duplicate_step", step.id))
        else:
            kept.append(step)
    return kept, anomalies


def _trusted(predecessors_of_done: dict[str, set[str]]) -> set[str]:
    """Grow the least set until nothing changes."""
    trusted: set[str] = set()
    while True:
        more = {s for s, before in predecessors_of_done.items() if before <= trusted}
        if more == trusted:
            return trusted
        trusted = more


def _ordered(
    waiting: list[str], declared: dict[str, set[str]], implied: dict[str, set[str]]
) -> list[str]:
    """Order what is to run (item 7)."""
    names = {s: declared[s] & set(waiting) for s in waiting}
    positions = {s: implied[s] & set(waiting) for s in waiting}
    cycle = _through_others({s: names[s] | positions[s] for s in waiting})
    named_cycle = _through_others(names)
    before: dict[str, set[str]] = {}
    for s in waiting:
        # Inside a cycle position edges do not count, and if named edges alone still make one,
        # neither do those.
        outer = {p for p in positions[s] if not (p in cycle[s] and s in cycle[p])}
        before[s] = outer | {
            p for p in names[s] if not (p in named_cycle[s] and s in named_cycle[p])
        }
    order: list[str] = []
    while len(order) < len(waiting):
        order.append(next(s for s in waiting if s not in order and before[s] <= set(order)))
    return order


def _through_others(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return whom each one waits for, directly or through others (Warshall)."""
    reach = {s: set(edges[s]) for s in edges}
    for middle in edges:
        for s in edges:
            if middle in reach[s]:
                reach[s] |= reach[middle]
    return reach
