"""``workflow``: a graph of steps, resumed and not replayed (ORC-01).

Payload ``{"steps": [{"id": TEXT, "depends_on": [TEXT...], "isolated": BOOL, "effect": TEXT}...]}``;
see `workflow_graph.read_graph`. Recovery policy: plan.

A start, first or not, seeds the gate, loads the snapshot, plans, and runs what is left (ORC-04), in
parallel where dependencies allow. A finished step is recorded by one snapshot, in one transaction
with its result; when all are, a terminal snapshot closes the run (ORC-07).

The window: a crash between a step's effect and its record leaves the effect in the world and the
step in the next plan's ``run``. Its recovery rule is to be done again under the key it had,
``RUN/STEP``: the world takes each key once, so the second time changes nothing (PLN-30). That is
the only rule a step can have; one whose effect cannot be asked for twice is refused.

A graph with a defect is refused before any step runs (STP-21). A blocked plan, which finds a run
that has ended with steps left, does nothing and reports UNKNOWN: whether to reopen it is for a
person to say (PLN-29). So does a snapshot that is damaged, and an effect whose outcome is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.capabilities.workflow_graph import WorkflowGraph, read_graph
from worker_under_test.capabilities.workflow_lanes import Lanes
from worker_under_test.capabilities.workflow_progress import REASON, RunProgress, SupersededError
from worker_under_test.checkpoint import DamagedRecordError, SeqGate, Status, build_plan
from worker_under_test.domain.errors import Kind, LocalFailureError, is_delivery, kind_of
from worker_under_test.domain.event import AttemptEvent, EventKind
from worker_under_test.domain.progress import WHOLE_PERCENT, Progress
from worker_under_test.domain.recovery import Decision, Proposal, RecoveryPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_under_test.checkpoint import Plan, Snapshot
    from worker_under_test.domain.command import Command
    from worker_under_test.domain.json_value import JsonValue
    from worker_under_test.domain.progress import Checkpoint
    from worker_under_test.ports.capability import ProgressReporter
    from worker_under_test.ports.effects import Effects
    from worker_under_test.ports.step_store import StepStore

GRAPH = "graph"
"""Field of a snapshot with the fingerprint of the graph that it was made for (ORC-08)."""


class Workflow:
    """The capability ``workflow``, version 1.

    Args:
        steps: Where runs keep how far they are.
        effects: What steps do outside.
        lanes: How steps are run; a variant of the capability replaces it.
    """

    name = "workflow"
    version = 1
    policy = RecoveryPolicy.PLAN

    def __init__(self, steps: StepStore, effects: Effects, lanes: type[Lanes] = Lanes) -> None:
        self._steps = steps
        self._effects = effects
        self._lanes = lanes
        self._gate = SeqGate()

    def recover(self, command: Command, checkpoint: Checkpoint | None) -> Proposal:  # noqa: ARG002
        """Resume: the snapshot says which steps are left, and each keeps its key (PLN-30)."""
        return Proposal(Decision.RESUME, "what the snapshot leaves is asked for under its old keys")

    async def execute(self, command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
        """Run what is left of the graph.

        Args:
            command: The command; its id names the run.
            reporter: Line to the attempt; gets the plan with every anomaly (ANO-13, ORC-02).

        Returns:
            ``succeeded`` when every step is done; ``failed`` with the reason when the graph has a
            defect or a step was refused; ``unknown`` when nobody can tell.

        Raises:
            DomainError: Of kind invalid, if the payload is not well formed.
            LocalFailureError: The worker's own store failed.
        """
        graph = read_graph(command)
        if defects := graph.defects():
            listed: list[JsonValue] = [*defects]
            return AttemptEvent(
                EventKind.FAILED, {"reason": f"graph refused: {defects[0]}", "defects": listed}
            )
        progress = RunProgress(
            command.command_id, self._gate, self._steps, {GRAPH: graph.fingerprint}
        )
        try:
            snapshot = await progress.load()
        except DamagedRecordError as error:
            return _unknown(str(error))
        plan = build_plan(graph.declared, snapshot)
        evidence = _evidence(graph, plan, snapshot)
        if snapshot is not None and snapshot.status == Status.FAILED:
            # It failed, and the worker died before it could say so. Nothing happens any more.
            return _failed(snapshot.fields.get(REASON, ""), evidence)
        if plan.blocked:
            return _unknown("the run has ended with steps left", evidence)
        crash_point("workflow.plan.after", run=command.command_id)
        done = len(plan.skip)
        percent = (WHOLE_PERCENT - 1) * done // len(graph.steps)
        await reporter(Progress("steps", "running", percent, done, len(graph.steps)), evidence)
        progress.begin(_base(graph, plan, snapshot), snapshot)
        lanes = self._lanes(command.command_id, reporter.attempt_id, self._effects, progress)
        by_id = {step.declared.id: step for step in graph.steps}
        failures = await lanes.run([by_id[name] for name in plan.run], graph.predecessors())
        return await _end(command, progress, failures, evidence, snapshot)


async def _end(
    command: Command,
    progress: RunProgress,
    failures: Sequence[Exception],
    evidence: dict[str, JsonValue],
    snapshot: Snapshot | None,
) -> AttemptEvent:
    for failure in failures:
        if isinstance(failure, LocalFailureError):
            raise failure
    if failures and not _is_refusal(failures[0]):
        # The effect may have happened. The run stays open: it can be resumed when that is known.
        return _unknown(f"{type(failures[0]).__name__}: {failures[0]}", evidence)
    crash_point("workflow.close.before", run=command.command_id)
    if snapshot is None or not snapshot.is_terminal:
        try:
            if failures:
                await progress.end(Status.FAILED, str(failures[0]))
            else:
                await progress.end(Status.COMPLETED)
        except SupersededError as error:
            return _unknown(str(error), evidence)
    crash_point("workflow.close.after", run=command.command_id)
    if failures:
        return _failed(str(failures[0]), evidence)
    return AttemptEvent(EventKind.SUCCEEDED, evidence)


def _is_refusal(failure: Exception) -> bool:
    return is_delivery(failure) and kind_of(failure) not in (None, Kind.INTERNAL)


def _base(graph: WorkflowGraph, plan: Plan, snapshot: Snapshot | None) -> list[str]:
    """Choose what the next snapshot starts from: never the loaded completions (ORC-11)."""
    known = {step.id for step in graph.declared}
    loaded = snapshot.done if snapshot is not None else ()
    return [*plan.skip, *(step_id for step_id in loaded if step_id not in known)]


def _evidence(graph: WorkflowGraph, plan: Plan, snapshot: Snapshot | None) -> dict[str, JsonValue]:
    """Say what was planned, with every anomaly, for the checkpoint and for the result (ANO-13)."""
    found = snapshot.fields.get(GRAPH, "") if snapshot is not None else graph.fingerprint
    return {
        "graph": graph.fingerprint,
        "graph_changed": found != graph.fingerprint,
        "skip": list(plan.skip),
        "run": list(plan.run),
        "anomalies": [
            {"kind": str(each.kind), "step": each.step, "detail": each.detail}
            for each in plan.anomalies
        ],
    }


def _failed(reason: str, evidence: dict[str, JsonValue]) -> AttemptEvent:
    return AttemptEvent(EventKind.FAILED, {"reason": reason, **evidence})


def _unknown(reason: str, evidence: dict[str, JsonValue] | None = None) -> AttemptEvent:
    return AttemptEvent(EventKind.UNKNOWN, {"reason": reason, **(evidence or {})})
