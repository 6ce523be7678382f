"""A graph as the planner sees it: which steps are kept, and what each of them waits for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_under_test.checkpoint.step import StepDef


@dataclass(frozen=True, slots=True)
class Removed:
    """An occurrence that is not kept: its id is empty, or a repetition.

    Attributes:
        position: Where it stood in the graph as given, counted from 0.
        id: Its id.
    """

    position: int
    id: str


@dataclass(frozen=True, slots=True)
class StepGraph:
    """The kept steps, numbered in graph order, and their predecessors.

    A step either waits for named steps, for nothing, or *by position* for every earlier step. Only
    named edges are listed: those by position would be quadratic in number.

    Attributes:
        steps: The kept steps; all other attributes follow this numbering.
        named: Per step, the kept steps that it names, without repetition and in its own order.
        missing: Per step, the ids that it names and that are not kept: its dangling edges.
        by_position: Per step, whether it waits for every earlier one.
        removed: What was left out, in graph order.
    """

    steps: tuple[StepDef, ...]
    named: tuple[tuple[int, ...], ...]
    missing: tuple[tuple[str, ...], ...]
    by_position: tuple[bool, ...]
    removed: tuple[Removed, ...]


def clean(graph: Sequence[StepDef]) -> StepGraph:
    """Keep the first occurrence of each id that is not empty, and resolve what they name.

    Args:
        graph: The steps in the host's order.

    Returns:
        The cleaned graph (ANO-01, ANO-02). Non-empty
        ``depends_on`` wins over ``isolated`` (AMB-7); an id that is not kept, the empty one
        included, is missing even if it was in the given graph (STP-10, STP-13).
    """
    steps: list[StepDef] = []
    removed: list[Removed] = []
    numbers: dict[str, int] = {}
    for position, step in enumerate(graph):
        if not step.id or step.id in numbers:
            removed.append(Removed(position, step.id))
        else:
            numbers[step.id] = len(steps)
            steps.append(step)
    # Repeated names are one edge (STP-14).
    names = [tuple(dict.fromkeys(step.depends_on or ())) for step in steps]
    return StepGraph(
        steps=tuple(steps),
        named=tuple(tuple(numbers[n] for n in each if n in numbers) for each in names),
        missing=tuple(tuple(n for n in each if n not in numbers) for each in names),
        by_position=tuple(
            not each and not step.isolated for each, step in zip(names, steps, strict=True)
        ),
        removed=tuple(removed),
    )
