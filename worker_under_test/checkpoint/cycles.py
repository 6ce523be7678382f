"""Cycles of a step graph, found in linear time and without recursion.

Two kinds matter. A *named* cycle consists of declared edges only. An *implied* one needs the
position of a step: in ``a, b (depends on c), c`` the undeclared ``c`` waits by position for ``b``
(STP-17). What is found are groups of steps that wait for each other, directly or through others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_under_test.checkpoint.graph import StepGraph


@dataclass(frozen=True, slots=True)
class Cycles:
    """The groups of steps of a graph that wait for each other.

    Attributes:
        named: Groups held together by named edges alone, a step that names itself included.
        implied: Groups held together by named edges and positions; a named group may lie inside.
            Groups and their members are in graph order.
    """

    named: tuple[tuple[int, ...], ...]
    implied: tuple[tuple[int, ...], ...]


def find_cycles(graph: StepGraph) -> Cycles:
    """Find every cycle of a graph.

    Args:
        graph: The cleaned graph.

    Returns:
        Its cycles.
    """
    count = len(graph.steps)
    named = tuple(
        group
        for group in _groups(graph.named)
        if len(group) > 1 or group[0] in graph.named[group[0]]
    )
    if not any(graph.by_position):
        return Cycles(named, ())
    # Node ``count + k`` stands for "steps 0 to k": it waits for step k and for "steps 0 to k-1".
    # Through these nodes a step waits for all earlier ones at the price of two edges per step.
    edges: list[tuple[int, ...]] = [
        ((count + step - 1,) if step else ()) if graph.by_position[step] else graph.named[step]
        for step in range(count)
    ]
    edges.extend((step, count + step - 1) if step else (step,) for step in range(count))
    implied: list[tuple[int, ...]] = []
    for group in _groups(edges):
        members = tuple(node for node in group if node < count)
        if len(members) > 1 and any(graph.by_position[step] for step in members):
            implied.append(members)
    return Cycles(named, tuple(implied))


def _groups(edges: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return the strongly connected components of a graph, ordered by their smallest node.

    Two walks (Kosaraju, Sharir): one along the edges, noting in which order nodes are finished,
    and one against them from the node finished last, which reaches just the nodes of its group.
    """
    against: list[list[int]] = [[] for _ in edges]
    for node, others in enumerate(edges):
        for other in others:
            against[other].append(node)
    grouped = [False] * len(edges)
    groups: list[tuple[int, ...]] = []
    for root in reversed(_finishing_order(edges)):
        if grouped[root]:
            continue
        grouped[root] = True
        group = [root]
        for node in group:  # grows while it is walked
            for other in against[node]:
                if not grouped[other]:
                    grouped[other] = True
                    group.append(other)
        groups.append(tuple(sorted(group)))
    return sorted(groups)


def _finishing_order(edges: Sequence[Sequence[int]]) -> list[int]:
    """Return the nodes in the order in which a depth-first walk leaves them."""
    seen = [False] * len(edges)
    finished: list[int] = []
    for root in range(len(edges)):
        if seen[root]:
            continue
        seen[root] = True
        path = [(root, iter(edges[root]))]
        while path:
            node, rest = path[-1]
            for other in rest:
                if not seen[other]:
                    seen[other] = True
                    path.append((other, iter(edges[other])))
                    break
            else:
                path.pop()
                finished.append(node)
    return finished
