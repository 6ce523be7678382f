"""The order in which steps may be taken, and the rule for those that wait for each other.

Both questions of a plan are one process: take steps one by one, each once all its predecessors
have been taken, always the first such step in graph order. Taking only finished steps answers
which completions are trusted (the least set, so a cycle is never in it); taking the others
afterwards answers in which order they run.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker_under_test.checkpoint.cycles import find_cycles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_under_test.checkpoint.graph import StepGraph


@dataclass(frozen=True, slots=True)
class Waits:
    """What each step waits for.

    Attributes:
        named: Per step, the steps it names.
        by_position: Per step, whether it waits for the earlier ones.
        opens: Per step, how many leading steps must be taken before the steps behind may look past
            this one although it is not taken. For a step that waits by position this is the moment
            at which it may be taken itself. The number of all steps means never.
    """

    named: Sequence[Sequence[int]]
    by_position: Sequence[bool]
    opens: Sequence[int]


def waits_of(graph: StepGraph) -> Waits:
    """Return what the steps of a graph wait for, nothing left out.

    Args:
        graph: The cleaned graph.
    """
    never = len(graph.steps)
    return Waits(
        graph.named,
        graph.by_position,
        [step if by_position else never for step, by_position in enumerate(graph.by_position)],
    )


def waits_without_cycles(graph: StepGraph) -> Waits:
    """Return what the steps wait for once every cycle is broken (AMB-9).

    Inside an implied cycle no step waits by position for another one of the cycle. Inside a cycle
    that is left, one of named edges, no step waits for another at all. Steps outside still wait
    for those inside, so what lies downstream of a cycle comes after it.

    Args:
        graph: The cleaned graph.
    """
    cycles = find_cycles(graph)
    whole = waits_of(graph)
    group_of = {step: number for number, group in enumerate(cycles.named) for step in group}
    named = [
        [other for other in names if step not in group_of or group_of.get(other) != group_of[step]]
        for step, names in enumerate(graph.named)
    ]
    opens = list(whole.opens)
    for group in cycles.implied:
        # Up to its last step that waits by position, the group holds nobody back once everything
        # before its first step is taken. Two such stretches never overlap: the last waiter of each
        # would wait for the first step of the other, and both would be one group.
        end = max(step for step in group if graph.by_position[step])
        for step in group:
            if step <= end:
                opens[step] = group[0]
    return Waits(named, whole.by_position, opens)


def take_in_order(waits: Waits, allowed: Sequence[bool], taken: Sequence[bool]) -> list[int]:
    """Take, again and again, the first step in graph order that waits for nothing any more.

    Positions cost no edges but two counters: ``front``, the number of leading steps that are all
    taken, and ``reach``, the number of leading steps that hold nobody behind them back.

    Args:
        waits: What the steps wait for.
        allowed: Per step, whether it may be taken at all.
        taken: Per step, whether it is taken from the start.

    Returns:
        The steps taken, in order; without those that were not allowed or that wait for ever.
    """
    count = len(taken)
    done = list(taken)
    followers, waiting_for = _count_named(waits.named, taken)
    candidate = [may and not was for may, was in zip(allowed, taken, strict=True)]
    ready = [  # ascending, and so a heap
        step
        for step in range(count)
        if candidate[step] and not waits.by_position[step] and not waiting_for[step]
    ]
    order: list[int] = []
    front = reach = 0
    while True:
        while front < count and done[front]:
            front += 1
        reach = max(reach, front)
        while reach < count and (done[reach] or waits.opens[reach] <= front):
            if waits.by_position[reach] and candidate[reach]:
                heapq.heappush(ready, reach)
            reach += 1
        if not ready:
            return order
        step = heapq.heappop(ready)
        done[step] = True
        order.append(step)
        for follower in followers[step]:
            waiting_for[follower] -= 1
            if not waiting_for[follower] and candidate[follower]:
                heapq.heappush(ready, follower)


def _count_named(
    named: Sequence[Sequence[int]], taken: Sequence[bool]
) -> tuple[list[list[int]], list[int]]:
    """Return per step who names it, and how many steps not yet taken it names itself."""
    followers: list[list[int]] = [[] for _ in named]
    waiting_for = [0] * len(named)
    for step, names in enumerate(named):
        for other in names:
            if not taken[other]:
                followers[other].append(step)
                waiting_for[step] += 1
    return followers, waiting_for
