"""Snapshots: they advance, keep what has landed, and lead to the end of every run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.model.oracle import Finding, broken_if
from harness.oracles.plans.reference_planner import plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.oracle import Evidence
    from harness.oracles.plans.step_evidence import StepSource


@dataclass(frozen=True, slots=True)
class SnapshotsAdvance:
    """The stored number of a run never goes down, and what has landed stays (INV-7, COM-09).

    A completion is only ever lost if it was not trusted when an incarnation began (ORC-11).

    Attributes:
        source: Where to look.
    """

    source: StepSource
    name: str = "snapshots-advance"
    promise: str = "a run's stored number never goes down, and no committed completion is lost"
    remedy: str = (
        "Hold one lock from taking number and completions until the snapshot is stored, and "
        "store it only where it is newer."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Compare each incarnation's end with its beginning and with what it committed."""
        return broken_if(dict.fromkeys(self._setbacks(evidence)))

    def _setbacks(self, evidence: Evidence) -> Iterator[str]:
        for life in self.source.incarnations(evidence):
            found, left = self.source.snapshots(life.before), self.source.snapshots(life.after)
            graphs = {
                graph.run_id: graph.steps
                for graph in self.source.graphs(evidence.workload, life.crashes)
            }
            for run_id, before in found.items():
                after = left.get(run_id)
                where = f"incarnation {life.number}, run {run_id!r}"
                if after is None or after.seq < before.seq:
                    now = "nothing" if after is None else after.seq
                    yield f"{where}: the stored number went from {before.seq} to {now}"
                done = set(after.done) if after is not None else set()
                trusted = plan(graphs.get(run_id, ()), before).skip
                if lost := sorted(trusted - done):
                    yield f"{where}: {lost} were recorded and trusted, and are not any more"
            for run_id, step_id in life.landed:
                after = left.get(run_id)
                if after is None or step_id not in after.done:
                    yield (
                        f"incarnation {life.number}, run {run_id!r}: the commit of step "
                        f"{step_id!r} returned, and its completion is not recorded"
                    )


@dataclass(frozen=True, slots=True)
class RunsEnd:
    """Every run reaches its end, with every step done and recorded (INV-9, ORC-07).

    Attributes:
        source: Where to look.
    """

    source: StepSource
    name: str = "runs-end"
    promise: str = "when the worker is quiet every run has ended, complete"
    remedy: str = (
        "Give a number back when its snapshot was not stored, and end a run only when every "
        "step of it is recorded."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Look at the last snapshot of every run, with the fresh one at the very end."""
        return broken_if(self._open(evidence))

    def _open(self, evidence: Evidence) -> Iterator[str]:
        fresh = evidence.workload.fresh.command_id
        graphs = self.source.graphs(evidence.workload, len(evidence.struck))
        for graph in graphs:
            if graph.run_id == fresh and not evidence.fresh_offered:
                continue
            image = evidence.final if graph.run_id == fresh else evidence.settled
            snapshot = self.source.snapshots(image).get(graph.run_id)
            if snapshot is None or snapshot.status != "completed":
                status = "nothing" if snapshot is None else repr(snapshot.status)
                yield f"run {graph.run_id!r} has not ended: {status}"
            elif not plan(graph.steps, snapshot).finished:
                yield f"run {graph.run_id!r} ended with steps left"
            done = {step for run, step in self.source.effects(image) if run == graph.run_id}
            for step in graph.steps:
                if step.step_id not in done:
                    yield f"run {graph.run_id!r}: step {step.step_id!r} never had its effect"


@dataclass(frozen=True, slots=True)
class LandedRunsOnce:
    """A step whose commit returned is not run by a later incarnation (ORC-06, SNP-15).

    It asks no snapshot, so it also holds against a worker that looks for them in the wrong place.
    A run whose graph changed in between is left out.

    Attributes:
        source: Where to look.
    """

    source: StepSource
    name: str = "landed-runs-once"
    promise: str = "a step whose commit returned never runs again"
    remedy: str = (
        "Load the stored snapshot at every start under a name that any process finds again, "
        "and trust what it says is done."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Remember what landed, and look for it in later incarnations."""
        return broken_if(self._again(evidence))

    def _again(self, evidence: Evidence) -> Iterator[str]:
        landed: dict[str, dict[str, int]] = {}
        graphs: dict[str, object] = {}
        for life in self.source.incarnations(evidence):
            for graph in self.source.graphs(evidence.workload, life.crashes):
                if graphs.setdefault(graph.run_id, graph) != graph:
                    graphs[graph.run_id] = graph
                    landed[graph.run_id] = {}
                known = landed.get(graph.run_id, {})
                for step_id in sorted(known.keys() & life.ran(graph.run_id)):
                    # One that began before and ended after the other could not know.
                    if known[step_id] < life.number:
                        yield (
                            f"incarnation {life.number}, run {graph.run_id!r}: step {step_id!r} "
                            f"ran again, though its commit had returned in {known[step_id]}"
                        )
            for run_id, step_id in life.landed:
                landed.setdefault(run_id, {}).setdefault(step_id, life.number)
