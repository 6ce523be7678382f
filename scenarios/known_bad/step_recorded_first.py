"""Known bad: a step is recorded as finished, and takes effect afterwards (ORC-06, INV-8).

A worker that is killed in between skips the step for ever. Caught by ``plan-right``: a step is
trusted that never had its effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.workflow import workflow
from worker_under_test.capabilities.registry import CapabilityRegistry
from worker_under_test.capabilities.workflow import Workflow
from worker_under_test.capabilities.workflow_lanes import Lanes
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from worker_under_test.capabilities.workflow_graph import WorkflowStep
    from worker_under_test.ports.bundle import Tools
    from worker_under_test.ports.capability import CapabilityExecutor


class RecordsFirst(Lanes):
    """Records before it does."""

    async def _see_through(self, step: WorkflowStep) -> None:
        await self._record(step)
        await self._take_effect(step)


def recording_first(tools: Tools) -> CapabilityExecutor:
    """Make the capabilities."""
    return CapabilityRegistry(Workflow(tools.steps, tools.effects, RecordsFirst))


STEP_RECORDED_FIRST = workflow(
    "step-recorded-first",
    Parts(capabilities=recording_first),
    broken_by("plan-right"),
    strike=("step.record.after", "step.run.after"),
)
