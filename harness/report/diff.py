"""A run against the one before: what is newly broken, what is fixed, what is new."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.record.run_schema import ExperimentRow, RunRecord


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed.

    Attributes:
        worse: Experiments that held and do not now, with the old and the new verdict.
        better: Experiments that did not hold and do now.
        other: Experiments whose verdict changed in another way.
        added: How many experiments are new.
        gone: How many are no longer there.
    """

    worse: tuple[tuple[str, str, str], ...]
    better: tuple[tuple[str, str, str], ...]
    other: tuple[tuple[str, str, str], ...]
    added: int
    gone: int

    @property
    def nothing(self) -> bool:
        """Whether nothing changed."""
        return not (self.worse or self.better or self.other or self.added or self.gone)


def compare_runs(now: RunRecord, before: RunRecord) -> Comparison:
    """Compare the experiments of two runs.

    Args:
        now: The run.
        before: The one before.
    """
    old = {_key(row): row["verdict"] for row in before["experiments"]}
    new = {_key(row): row["verdict"] for row in now["experiments"]}
    changed = [
        (row["id"], old[_key(row)], row["verdict"])
        for row in now["experiments"]
        if old.get(_key(row), row["verdict"]) != row["verdict"]
    ]
    return Comparison(
        worse=tuple(change for change in changed if change[1] == "held"),
        better=tuple(change for change in changed if change[2] == "held"),
        other=tuple(change for change in changed if "held" not in change[1:]),
        added=len(new.keys() - old.keys()),
        gone=len(old.keys() - new.keys()),
    )


def _key(row: ExperimentRow) -> tuple[str, int]:
    return row["id"], row["seed"]
