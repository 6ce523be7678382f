"""Runs the steps of a plan, as many at once as their dependencies allow."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.domain.errors import is_delivery, kind_of
from worker_under_test.ports.step_store import StepResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from worker_under_test.capabilities.workflow_graph import WorkflowStep
    from worker_under_test.capabilities.workflow_progress import RunProgress
    from worker_under_test.domain.json_value import JsonObject
    from worker_under_test.ports.effects import Effects

TRIES = 3
"""How often an effect is asked for, under one key, before its outcome counts as unknown."""


class Lanes:
    """The steps of one run in one life.

    Args:
        run_id: The run.
        token: Who asks for the effects.
        effects: What the steps do outside.
        progress: Where finished steps are recorded.
    """

    def __init__(self, run_id: str, token: str, effects: Effects, progress: RunProgress) -> None:
        self._run_id = run_id
        self._token = token
        self._effects = effects
        self._progress = progress
        self._failures: list[Exception] = []

    async def run(
        self, steps: Sequence[WorkflowStep], before: Mapping[str, Sequence[str]]
    ) -> Sequence[Exception]:
        """Run steps, each when every predecessor among them is committed (ORC-12).

        After a failure no further step begins; those that have begun are seen through.

        Args:
            steps: What is left.
            before: What each step waits for; what is not among `steps` is trusted already.

        Returns:
            What went wrong, in the order in which it did.
        """
        over = {step.declared.id: asyncio.Event() for step in steps}
        async with asyncio.TaskGroup() as lanes:
            for step in steps:
                waits = [over[name] for name in before[step.declared.id] if name in over]
                lanes.create_task(self._lane(step, waits, over[step.declared.id]))
        return self._failures

    async def _lane(
        self, step: WorkflowStep, waits: Sequence[asyncio.Event], over: asyncio.Event
    ) -> None:
        for event in waits:
            await event.wait()
        try:
            if not self._failures:
                await self._see_through(step)
        except Exception as error:  # noqa: BLE001 - the run is told, and decides what comes of it
            self._failures.append(error)
        over.set()

    async def _see_through(self, step: WorkflowStep) -> None:
        await self._take_effect(step)
        await self._record(step)

    async def _take_effect(self, step: WorkflowStep) -> None:
        crash_point("step.run.before", run=self._run_id, step=step.declared.id)
        await self._apply(step.effect, self._key(step))
        crash_point("step.run.after", run=self._run_id, step=step.declared.id)

    async def _record(self, step: WorkflowStep) -> None:
        output: JsonObject = {"effect": step.effect, "key": self._key(step)}
        await self._progress.record(StepResult(step.declared.id, output))
        crash_point("step.record.after", run=self._run_id, step=step.declared.id)

    def _key(self, step: WorkflowStep) -> str:
        return f"{self._run_id}/{step.declared.id}"

    async def _apply(self, kind: str, key: str) -> None:
        for last in (False,) * (TRIES - 1) + (True,):
            try:
                await self._effects.apply(kind, key, self._token)
                return
            except Exception as error:
                if last or not is_delivery(error) or kind_of(error) is not None:
                    raise
