"""Progress of an attempt, and the checkpoint that is made of it (CAP-04, CAP-05)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.json_value import canonical

if TYPE_CHECKING:
    from worker_under_test.domain.json_value import JsonObject, JsonValue

WHOLE_PERCENT = 100


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an attempt is.

    Attributes:
        stage: Name of the current stage.
        status: Status of the stage; its JSON name is ``stage_status``.
        progress: The whole attempt, in percent, 0 to 100.
        completed: Items of the current stage that are done.
        total: Items of the current stage.
        failed: Items of the current stage that failed.

    Raises:
        DomainError: Of kind invalid, if a number is not an integer in its range (CAP-05).
    """

    stage: str
    status: str
    progress: int
    completed: int = 0
    total: int = 0
    failed: int = 0

    def __post_init__(self) -> None:
        numbers = (self.progress, self.completed, self.total, self.failed)
        # bool is an int to isinstance, and True per cent means nothing.
        if any(type(number) is not int or number < 0 for number in numbers):
            raise DomainError(Kind.INVALID, "progress must be counted in integers from 0")
        if self.progress > WHOLE_PERCENT or self.completed + self.failed > self.total:
            raise DomainError(Kind.INVALID, "progress is more than the whole")

    def to_json(self) -> dict[str, JsonValue]:
        """Return the progress under its JSON names."""
        return {
            "stage": self.stage,
            "stage_status": self.status,
            "progress": self.progress,
            "completed": self.completed,
            "total": self.total,
            "failed": self.failed,
        }


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What an attempt last recorded of itself. A hint for recovery, never a proof (REC-13).

    Attributes:
        seq: Number of the record, from 1; a lower one never replaces a higher one.
        progress: The progress as JSON.
        evidence: What the capability wants to find again after a crash.

    Raises:
        ValueError: The evidence cannot be written as JSON.
    """

    seq: int
    progress: JsonObject
    evidence: JsonObject

    def __post_init__(self) -> None:
        canonical(self.evidence)
