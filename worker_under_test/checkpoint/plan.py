"""The plan of a run after a restart: resume, not replay."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from worker_under_test.checkpoint.graph import clean
from worker_under_test.checkpoint.order import take_in_order, waits_of, waits_without_cycles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_under_test.checkpoint.graph import StepGraph
    from worker_under_test.checkpoint.snapshot import Snapshot
    from worker_under_test.checkpoint.step import StepDef


class AnomalyKind(StrEnum):
    """How graph and snapshot can disagree (ANO-01 to ANO-06)."""

    EMPTY_STEP_ID = "empty_step_id"
    DUPLICATE_STEP = "duplicate_step"
    DONE_NOT_IN_GRAPH = "done_not_in_graph"
    DONE_OUT_OF_ORDER = "done_out_of_order"
    COMPLETE_WITH_PENDING = "complete_with_pending"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One disagreement, reported and not ruled on (ANO-07).

    Attributes:
        kind: Which one.
        step: Id of the step it is about; empty for an empty id and for the run as a whole.
        detail: For people: where it is and what follows from it.
    """

    kind: AnomalyKind
    step: str
    detail: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What to skip and what to run.

    Attributes:
        skip: Steps that are finished and trusted, in graph order (PLN-11).
        run: Steps to run, in an order that respects what they wait for (PLN-12 to PLN-14).
        anomalies: Disagreements in order of detection: defects of the graph in graph order,
            unknown finished steps in their own order, untrusted ones in graph order, and the
            terminal state last (ANO-08).
    """

    skip: tuple[str, ...]
    run: tuple[str, ...]
    anomalies: tuple[Anomaly, ...]

    @property
    def blocked(self) -> bool:
        """Whether the host must decide: the run has ended and something is unfinished (PLN-18)."""
        return self.has_anomaly(AnomalyKind.COMPLETE_WITH_PENDING)

    def has_anomaly(self, kind: AnomalyKind) -> bool:
        """Tell whether a kind of anomaly was reported (PLN-20).

        Args:
            kind: The kind.
        """
        return any(anomaly.kind == kind for anomaly in self.anomalies)


def build_plan(graph: Sequence[StepDef], snapshot: Snapshot | None) -> Plan:
    """Derive from a graph and a snapshot what is left to run (PLN-01).

    A completion is trusted if the step is done, it names no step outside the graph, and all its
    predecessors are trusted (PLN-04). In doubt a step runs again (PLN-24); whether its effect may
    happen again is decided by the capability's recovery rule, not here (PLN-30).

    Steps run in graph order as far as their predecessors allow. Steps that wait for each other are
    never trusted; they run once, in graph order, named edges before implied ones, and before what
    waits for them (AMB-9). `check_graph` reports them, since no anomaly does.

    A run in a terminal state with something left to run is blocked and nothing is planned; "left
    to run" counts steps that are done and not trusted (PLN-22, AMB-3).

    Pure: no input changes, nothing is read or written, and equal inputs give equal plans. Time is
    near linear in steps and named dependencies, without recursion (PLN-31). Of the snapshot only
    ``done`` and ``status`` count (PLN-27).

    Args:
        graph: The steps in the host's order.
        snapshot: The stored progress, or None on a first run; then everything runs, and only
            defects of the graph are reported (PLN-02, AMB-2).

    Returns:
        The plan.
    """
    kept = clean(graph)
    anomalies = _removed(kept)
    ids = [step.id for step in kept.steps]
    trusted = [False] * len(ids)
    if snapshot is not None:
        finished = dict.fromkeys(snapshot.done)
        anomalies += _unknown(finished, ids)
        done = [step_id in finished for step_id in ids]
        sound = [is_done and not gone for is_done, gone in zip(done, kept.missing, strict=True)]
        for step in take_in_order(waits_of(kept), sound, trusted):
            trusted[step] = True
        anomalies += _untrusted(kept, done, trusted)
    skip = tuple(ids[step] for step in range(len(ids)) if trusted[step])
    run = tuple(ids[step] for step in _run_order(kept, trusted))
    if snapshot is not None and snapshot.is_terminal and run:
        anomalies.append(
            Anomaly(
                AnomalyKind.COMPLETE_WITH_PENDING,
                "",
                f"the run ended as {snapshot.status!r} and {len(run)} of {len(ids)} steps would "
                f"run, {run[0]!r} first; the host decides whether to reopen it",
            )
        )
        skip = run = ()
    return Plan(skip, run, tuple(anomalies))


def _removed(kept: StepGraph) -> list[Anomaly]:
    return [
        Anomaly(
            AnomalyKind.DUPLICATE_STEP if removed.id else AnomalyKind.EMPTY_STEP_ID,
            removed.id,
            f"left out at position {removed.position} of the graph, counted from 0",
        )
        for removed in kept.removed
    ]


def _unknown(finished: dict[str, None], ids: Sequence[str]) -> list[Anomaly]:
    known = set(ids)
    return [
        Anomaly(
            AnomalyKind.DONE_NOT_IN_GRAPH,
            step_id,
            "recorded as done, and the graph has no such step; it does not run",
        )
        for step_id in finished
        if step_id not in known
    ]


def _untrusted(kept: StepGraph, done: Sequence[bool], trusted: Sequence[bool]) -> list[Anomaly]:
    return [
        Anomaly(
            AnomalyKind.DONE_OUT_OF_ORDER,
            step.id,
            f"recorded as done, but {_reason(kept, number)}; it runs again",
        )
        for number, step in enumerate(kept.steps)
        if done[number] and not trusted[number]
    ]


def _reason(kept: StepGraph, number: int) -> str:
    if kept.missing[number]:
        return f"it depends on {kept.missing[number][0]!r}, which is not in the graph"
    if kept.by_position[number]:
        return "a step before it is not finished or not trusted"
    return "a step it depends on is not finished or not trusted"


def _run_order(kept: StepGraph, trusted: Sequence[bool]) -> list[int]:
    everything = [True] * len(trusted)
    order = take_in_order(waits_of(kept), everything, trusted)
    if len(order) < len(trusted) - sum(trusted):
        # Some wait for ever. Trusted steps are never part of that: all they wait for is trusted.
        order = take_in_order(waits_without_cycles(kept), everything, trusted)
    return order
