"""The plan: after each crash the worker does what is left, and nothing else.

The plan is worked out again from the crash image by `harness.oracles.plans.reference_planner`, and
compared with what the world saw and with the trace of the next incarnation.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.model.oracle import Finding, broken_if
from harness.oracles.plans.reference_planner import TERMINAL, plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.oracle import Evidence
    from harness.oracles.mailbox.worker_state import GraphRow, SnapshotRow
    from harness.oracles.plans.reference_planner import NaivePlan
    from harness.oracles.plans.step_evidence import IncarnationEvidence, StepSource


@dataclass(frozen=True, slots=True)
class PlanRight:
    """Every incarnation works by the right plan of what it found (INV-8, INV-13).

    Nothing is skipped without its effect in the world (PLN-11), nothing runs whose completion was
    trusted (ORC-01), no step takes effect before its predecessors are committed (ORC-12), a
    completion that is not trusted is not kept without a new run of the step (PLN-24, ORC-11), a run
    is not ended with steps left (ORC-07), and blocked means that nothing happens (PLN-29).

    Attributes:
        source: Where to look.
    """

    source: StepSource
    name: str = "plan-right"
    promise: str = "after a crash the steps that are left run, and no trusted or blocked ones"
    remedy: str = (
        "Record a step only after its effect, with every step before it; after a restart run "
        "what is not recorded, and nothing that is blocked."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Plan anew for every incarnation and every run, and compare."""
        return broken_if(dict.fromkeys(self._faults(evidence)))

    def _faults(self, evidence: Evidence) -> Iterator[str]:
        for life in self.source.incarnations(evidence):
            found, left = self.source.snapshots(life.before), self.source.snapshots(life.after)
            for graph in self.source.graphs(evidence.workload, life.crashes):
                right = plan(graph.steps, found.get(graph.run_id))
                where = f"incarnation {life.number}, run {graph.run_id!r}"
                before, after = found.get(graph.run_id), left.get(graph.run_id)
                if right.blocked:
                    yield from _not_still(where, life.ran(graph.run_id), before, after)
                    continue
                yield from self._wrongly_done(where, graph, right, life)
                yield from self._wrongly_recorded(where, graph, right, life)
                if before is None or before.status not in TERMINAL:
                    yield from _wrongly_ended(where, graph, right, after)
            for step, times in Counter(life.started).items():
                if times > 1:
                    yield f"incarnation {life.number}: step {step} ran {times} times"

    def _wrongly_done(
        self, where: str, graph: GraphRow, right: NaivePlan, life: IncarnationEvidence
    ) -> Iterator[str]:
        known = {step for run, step in self.source.effects(life.before) if run == graph.run_id}
        for step_id in sorted(right.skip - known):
            yield f"{where}: step {step_id!r} is trusted and never had its effect"
        for step_id in sorted(right.skip & life.ran(graph.run_id)):
            yield f"{where}: step {step_id!r} ran again, though its completion was trusted"

    def _wrongly_recorded(
        self, where: str, graph: GraphRow, right: NaivePlan, life: IncarnationEvidence
    ) -> Iterator[str]:
        before = self.source.snapshots(life.before).get(graph.run_id)
        after = self.source.snapshots(life.after).get(graph.run_id)
        done = frozenset(after.done) if after is not None else frozenset()
        ran = life.ran(graph.run_id)
        for step_id in sorted(ran - right.hopeless & right.before.keys()):
            missing = sorted(right.before[step_id] - done)
            if missing:
                yield f"{where}: step {step_id!r} ran, and {missing} before it are not recorded"
        if after == before:
            return
        # What was recorded and not trusted needs a new run before it is recorded again. What was
        # not recorded and has its effect may be an earlier incarnation's commit that landed late.
        doubtful = frozenset(before.done) if before is not None else frozenset()
        known = {step for run, step in self.source.effects(life.before) if run == graph.run_id}
        for step_id in sorted(done & right.before.keys() - right.skip - ran):
            if step_id in doubtful or step_id not in known:
                yield f"{where}: step {step_id!r} is recorded as done, not trusted and did not run"


def _not_still(
    where: str, ran: set[str], before: SnapshotRow | None, after: SnapshotRow | None
) -> Iterator[str]:
    if ran:
        yield f"{where}: blocked, and steps {sorted(ran)} ran"
    if before != after:
        yield f"{where}: blocked, and its snapshot changed"


def _wrongly_ended(
    where: str, graph: GraphRow, right: NaivePlan, after: SnapshotRow | None
) -> Iterator[str]:
    if after is None or after.status != "completed" or right.hopeless:
        return
    left = plan(graph.steps, after)
    if left.blocked:
        yield f"{where}: ended as completed with steps left"
