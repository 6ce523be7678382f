"""Where runs of steps keep how far they are: in the worker's own database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from worker_under_test.checkpoint import Snapshot
    from worker_under_test.domain.json_value import JsonObject


@dataclass(frozen=True, slots=True)
class StepResult:
    """What came of a step.

    Attributes:
        step_id: The step.
        output: What it gave.
    """

    step_id: str
    output: JsonObject


class StepStore(Protocol):
    """Snapshots of runs and results of steps. A failure of the database is raised as it is."""

    async def load(self, run_id: str) -> Snapshot:
        """Return the stored snapshot of a run; see `StoreCAS.load`.

        Args:
            run_id: The run.

        Raises:
            NotFound: There is none.
            DamagedRecordError: There is one and it cannot be trusted.
        """

    async def save_step(self, snapshot: Snapshot, result: StepResult | None) -> None:
        """Save a snapshot if it is newer, and with it what came of its step (ORC-09).

        Both are in one transaction: all there or all missing.

        Args:
            snapshot: The snapshot.
            result: The result of the step that it records; None when it records none.

        Raises:
            StaleSeq: An equal or higher number is stored; nothing is written.
        """
