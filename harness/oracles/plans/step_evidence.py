"""Evidence of the steps of runs, for the oracles of plans and snapshots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from harness.model.workload import Workload
from harness.oracles.effects import read_ledger
from harness.oracles.mailbox.worker_state import GraphRow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.image import Image
    from harness.model.oracle import EndedIncarnation, Evidence
    from harness.oracles.mailbox.worker_state import SnapshotRow, StateReader

GraphsOf: TypeAlias = Callable[[Workload, int], tuple[GraphRow, ...]]
"""The graphs that an incarnation works with, from the workload and the number of crashes before
it. They are worked out from what was asked, not read from the worker."""

Step: TypeAlias = tuple[str, str]
"""Run and step."""


@dataclass(frozen=True, slots=True)
class StepSource:
    """Where oracles find graphs, snapshots and what became of steps.

    The key of a step's effect in the ledger is ``RUN/STEP``. The points carry ``run`` and ``step``.

    Attributes:
        read_books: Reader of the worker's books.
        graphs: What was asked.
        kinds: Kinds of effects under which the world keeps that a step was done, or asked for.
        starts: Label of the point that stands before a step's work; empty for none.
        landed: Label of the point that stands after a step's commit returned; empty for none.
    """

    read_books: StateReader
    graphs: GraphsOf
    kinds: frozenset[str] = frozenset({"step"})
    starts: str = ""
    landed: str = ""

    def snapshots(self, image: Image) -> dict[str, SnapshotRow]:
        """Return the snapshots that are durable in an image, by run."""
        books = image.read(self.read_books, image.worker_dir)
        return {row.run_id: row for row in books.snapshots}

    def effects(self, image: Image) -> list[Step]:
        """Return the steps that the world of an image has seen, in order."""
        effects = image.read(read_ledger, image.world_dir)
        keys = (effect.key.partition("/") for effect in effects if effect.kind in self.kinds)
        return [(run_id, step_id) for run_id, _, step_id in keys]

    def incarnations(self, evidence: Evidence) -> Iterator[IncarnationEvidence]:
        """Give what each incarnation found, did and left, in order."""
        last = len(evidence.incarnations) - 1
        for number, life in enumerate(evidence.incarnations):
            # The second restart may be shared with other experiments that settled in an equal
            # state; what it started from is in this one's own image.
            before = evidence.settled if number == last else life.before
            yield IncarnationEvidence(
                number=life.number,
                crashes=min(number, len(evidence.struck)),
                before=before,
                after=life.after,
                asked=self.effects(life.after)[len(self.effects(before)) :],
                started=_at(life, self.starts),
                landed=_at(life, self.landed),
            )


@dataclass(frozen=True, slots=True)
class IncarnationEvidence:
    """One incarnation, as far as its steps go.

    Attributes:
        number: Its number.
        crashes: How many incarnations were struck before it.
        before: What it found.
        after: What it left.
        asked: Steps that the world saw meanwhile, with repetitions.
        started: Steps whose work it began, by its trace, with repetitions.
        landed: Steps whose commit returned, by its trace.
    """

    number: int
    crashes: int
    before: Image
    after: Image
    asked: list[Step]
    started: list[Step]
    landed: list[Step]

    def ran(self, run_id: str) -> set[str]:
        """Return the steps of a run that were done or begun."""
        return {step for run, step in (*self.asked, *self.started) if run == run_id}


def _at(life: EndedIncarnation, label: str) -> list[Step]:
    return [
        (hit.context["run"], hit.context["step"])
        for hit in life.hits
        if label and hit.label == label
    ]
