"""Known bad: hosts that use a right kernel wrongly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.oracles.plans.snapshots import LandedRunsOnce
from harness.scenario import broken_by
from scenarios.plan_host.fault_plan import PlannedFaults
from scenarios.plan_host.host import PlanHost
from scenarios.plan_host.reference import DIAMOND, SOURCE, plan_host
from scenarios.plan_host.requested_graphs import requesting, run
from worker_under_test.checkpoint import Snapshot, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.model.workload import Command
    from scenarios.plan_host.host import Run
    from worker_under_test.checkpoint import Plan, StepDef


class RunNamedByProcess(PlanHost):
    """The run is named by the process, and the next one finds no snapshot (M-21, SNP-02).

    Caught by ``landed-runs-once``: everything runs again.
    """

    def run_id(self, command: Command) -> str:
        """Name the run after this incarnation."""
        return f"{command.command_id}-{self.site.incarnation}"


class StaleBase(PlanHost):
    """A snapshot is built from what was done when its step began (M-30, SNP-16).

    Two steps that finish together each drop the other. Caught by ``snapshots-advance``.
    """

    def finish(self, run: Run, step_id: str, base: tuple[str, ...]) -> Snapshot:
        """Take the number now and the completions from before."""
        snapshot = super().finish(run, step_id, base)
        return Snapshot(snapshot.run_id, snapshot.seq, Status.RUNNING, (*base, step_id))


class Launders(PlanHost):
    """The next snapshot starts from the loaded completions, trusted or not (M-33, ORC-11, BP-S2).

    When the hole is filled, the old completion behind it looks trusted. Caught by ``plan-right``.
    """

    def base(self, graph: Sequence[StepDef], plan: Plan, snapshot: Snapshot | None) -> list[str]:
        """Take over everything that was loaded."""
        return list(snapshot.done) if snapshot is not None else super().base(graph, plan, snapshot)


RUN_NAMED_BY_PROCESS = plan_host(
    "run-named-by-process",
    RunNamedByProcess,
    requesting(run("r1", DIAMOND)),
    PlannedFaults(),
    broken_by("landed-runs-once"),
    # The other oracles look for the run under its right name, and find nothing even without a
    # crash.
    oracles=(LandedRunsOnce(SOURCE),),
    strike=("task.commit.after", "run.end.before"),
)

STALE_BASE = plan_host(
    "stale-base",
    StaleBase,
    requesting(run("r1", "a b<a c<a e<b,c")),
    PlannedFaults(late=frozenset("c")),
    broken_by("snapshots-advance"),
    strike=("late.commit.before", "late.commit.after"),
)

LAUNDERS = plan_host(
    "untrusted-completion-kept",
    Launders,
    requesting(run("r1", "a c d", "a b c d")),
    PlannedFaults(slow=frozenset("d")),
    broken_by("plan-right"),
    strike=("slow.run.before", "resume.commit.after"),
)
