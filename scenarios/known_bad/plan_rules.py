"""Known bad: planners that read one rule of the graph wrongly, each caught by ``plan-right``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.oracles.plans.plan import PlanRight
from harness.scenario import broken_by
from scenarios.plan_host.fault_plan import PlannedFaults
from scenarios.plan_host.host import PlanHost
from scenarios.plan_host.reference import SOURCE, plan_host
from scenarios.plan_host.requested_graphs import graph_of, requesting, run
from worker_under_test.checkpoint import Plan, StepDef, build_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.model.workload import Command
    from worker_under_test.checkpoint import Snapshot

FIRST_IS_SLOW = PlannedFaults(slow=frozenset("a"))
"""The first step is slow: one that does not wait for it overtakes it."""


class EmptyIsNone(PlanHost):
    """An empty list of dependencies means no predecessor (M-09, STP-06, BP-X27, BP-X73)."""

    def graph(self, command: Command, crashes: int) -> list[StepDef]:
        """Read the graph; a list that came out empty frees its step."""
        asked = graph_of(command, crashes)
        read = super().graph(command, crashes)
        return [
            replace(step, isolated=True) if fields["listed"] else step
            for step, fields in zip(read, asked, strict=True)
        ]


class IsolatedFreesFollowers(PlanHost):
    """Nobody waits for an isolated step by position (M-10, STP-08, BP-X67, BP-X70)."""

    def graph(self, command: Command, crashes: int) -> list[StepDef]:
        """Read the graph; a step that declares nothing waits for the earlier ones that do not."""
        read = super().graph(command, crashes)
        changed = []
        for place, step in enumerate(read):
            earlier = [other.id for other in read[:place] if not other.isolated]
            waits = not step.depends_on and not step.isolated
            changed.append(
                replace(step, depends_on=earlier, isolated=not earlier) if waits else step
            )
        return changed


class DanglingIsSatisfied(PlanHost):
    """A dependency on a step that is not there counts as done (M-11, STP-10, BP-X84)."""

    def graph(self, command: Command, crashes: int) -> list[StepDef]:
        """Read the graph; what is not there is waited for by nobody."""
        read = super().graph(command, crashes)
        known = {step.id for step in read}
        changed = []
        for step in read:
            left = [name for name in step.depends_on or () if name in known]
            freed = bool(step.depends_on) and not left
            changed.append(replace(step, depends_on=left, isolated=step.isolated or freed))
        return changed


class BlockedStillRuns(PlanHost):
    """A blocked plan still carries what it would run (M-12, PLN-17, INV-13)."""

    def plan(self, graph: Sequence[StepDef], snapshot: Snapshot | None) -> Plan:
        """Plan as if the run had not ended, and report that it had."""
        right = build_plan(graph, snapshot)
        if snapshot is None or not right.blocked:
            return right
        open_plan = build_plan(graph, replace(snapshot, status="running"))
        return Plan(open_plan.skip, open_plan.run, right.anomalies)


class HolesIgnored(PlanHost):
    """What is recorded as done is skipped, whatever is missing before it (M-28, PLN-07, BP-X18)."""

    def plan(self, graph: Sequence[StepDef], snapshot: Snapshot | None) -> Plan:
        """Take the recorded steps out of the graph."""
        right = build_plan(graph, snapshot)
        done = frozenset(snapshot.done) if snapshot is not None else frozenset()
        if right.blocked:
            return right
        return Plan(
            tuple(step.id for step in graph if step.id in done),
            tuple(step.id for step in graph if step.id not in done),
            right.anomalies,
        )


EMPTY_IS_NONE = plan_host(
    "empty-dependencies-are-none",
    EmptyIsNone,
    requesting(run("r1", "a b[] c!")),
    FIRST_IS_SLOW,
    broken_by("plan-right"),
    strike=("task.run.after", "task.commit.after"),
)

ISOLATED_FREES_FOLLOWERS = plan_host(
    "isolated-frees-followers",
    IsolatedFreesFollowers,
    requesting(run("r1", "a! b c")),
    FIRST_IS_SLOW,
    broken_by("plan-right"),
    strike=("task.run.after", "task.commit.after"),
)

DANGLING_IS_SATISFIED = plan_host(
    "dangling-is-satisfied",
    DanglingIsSatisfied,
    # The bad graph is deployed after a crash. A run with it has no end that is right, so
    # only the plan is judged.
    requesting(run("r1", "a b c", "a b<a,ghost c!")),
    PlannedFaults(slow=frozenset("c")),
    broken_by("plan-right"),
    oracles=(PlanRight(SOURCE),),
    strike=("task.commit.after", "slow.run.before"),
)

BLOCKED_STILL_RUNS = plan_host(
    "blocked-still-runs",
    BlockedStillRuns,
    # The graph grows after the crash; when that came after the end of the run, it stays blocked.
    requesting(run("r1", "a b", "a b x")),
    PlannedFaults(),
    broken_by("plan-right"),
    oracles=(PlanRight(SOURCE),),
    strike=("task.commit.after", "run.end.before"),
)

HOLES_IGNORED = plan_host(
    "holes-ignored",
    HolesIgnored,
    # A step is put in before one that is done already.
    requesting(run("r1", "a c d", "a b c d")),
    PlannedFaults(slow=frozenset("d")),
    broken_by("plan-right"),
    strike=("task.commit.after", "slow.run.before"),
)
