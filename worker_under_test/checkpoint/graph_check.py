"""A check of a graph at registration time, for what a plan has no anomaly for (STP-21)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from worker_under_test.checkpoint.cycles import find_cycles
from worker_under_test.checkpoint.graph import clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from worker_under_test.checkpoint.graph import StepGraph
    from worker_under_test.checkpoint.step import StepDef


class DefectKind(StrEnum):
    """What can be wrong with a graph, whatever the snapshot says.

    A step with a dangling dependency, one in a cycle of either kind, and everything downstream of
    them is never trusted and so runs again after every restart (STP-10, STP-11, STP-16).
    """

    EMPTY_STEP_ID = "empty_step_id"
    DUPLICATE_STEP = "duplicate_step"
    DANGLING_DEPENDENCY = "dangling_dependency"
    CYCLE = "cycle"
    IMPLIED_CYCLE = "implied_cycle"
    ISOLATED_WITH_DEPENDENCIES = "isolated_with_dependencies"


@dataclass(frozen=True, slots=True)
class GraphDefect:
    """One defect.

    Attributes:
        kind: Which one.
        step: Id of the step that has it; of a cycle, its first step in graph order.
        detail: For people: what is wrong, and what would be right where that is not obvious.
        steps: Of a cycle, the ids of all its steps in graph order; else empty.
    """

    kind: DefectKind
    step: str
    detail: str
    steps: tuple[str, ...] = ()


def check_graph(graph: Sequence[StepDef]) -> tuple[GraphDefect, ...]:
    """Report what makes steps of a graph vanish, run for ever, or mean two things at once.

    Args:
        graph: The steps in the host's order.

    Returns:
        The defects: left-out occurrences, dangling dependencies, contradictions, each in graph
        order, then cycles of named edges and cycles that need positions. Empty if all is well.
    """
    kept = clean(graph)
    return (*_left_out(kept), *_dangling(kept), *_contradictions(kept), *_cycles(kept))


def _left_out(kept: StepGraph) -> Iterator[GraphDefect]:
    for removed in kept.removed:
        where = f"at position {removed.position}, counted from 0"
        if removed.id:
            yield GraphDefect(
                DefectKind.DUPLICATE_STEP, removed.id, f"repeated {where}; only the first counts"
            )
        else:
            yield GraphDefect(DefectKind.EMPTY_STEP_ID, "", f"no id {where}; it never runs")


def _dangling(kept: StepGraph) -> Iterator[GraphDefect]:
    for step, missing in zip(kept.steps, kept.missing, strict=True):
        for name in missing:
            yield GraphDefect(
                DefectKind.DANGLING_DEPENDENCY,
                step.id,
                f"depends on {name!r}, which is not in the graph; it is never trusted",
            )


def _contradictions(kept: StepGraph) -> Iterator[GraphDefect]:
    for step in kept.steps:
        if step.isolated and step.depends_on:
            yield GraphDefect(
                DefectKind.ISOLATED_WITH_DEPENDENCIES,
                step.id,
                "isolated and with dependencies; the dependencies count",
            )


def _cycles(kept: StepGraph) -> Iterator[GraphDefect]:
    cycles = find_cycles(kept)
    for kind, groups, advice in (
        (DefectKind.CYCLE, cycles.named, "depend on each other"),
        (
            DefectKind.IMPLIED_CYCLE,
            cycles.implied,
            "wait for each other: one that declares nothing waits for all earlier ones",
        ),
    ):
        for group in groups:
            ids = tuple(kept.steps[number].id for number in group)
            yield GraphDefect(kind, ids[0], f"{_listed(ids)} {advice}", ids)


def _listed(ids: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(repr(step_id) for step_id in ids[:most])
    return f"{shown} and {len(ids) - most} more" if len(ids) > most else shown
