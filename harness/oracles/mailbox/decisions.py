"""Recovery: the decision is the one that the capability's policy demands, and it converges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.model.oracle import Finding, broken_if
from harness.oracles.effects import read_ledger
from harness.oracles.mailbox.worker_state import ENDED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.oracle import EndedIncarnation, Evidence
    from harness.oracles.mailbox.worker_state import AttemptRow, StateReader

View = Callable[[Path], object]


@dataclass(frozen=True, slots=True)
class DecisionsRight:
    """Recovery decides per attempt, by its capability's policy, and writes down why (REC-01).

    Attributes:
        read_books: Reader of the worker's books.
        policy: The right decision for an attempt as a restart finds it; an independent reading of
            the requirements, not the worker's own table.
    """

    read_books: StateReader
    policy: Callable[[AttemptRow], str]
    name: str = "recovery-decision-right"
    promise: str = "recovery decides what the capability's policy demands, once per open attempt"
    remedy: str = (
        "Let recovery look at each open attempt once and decide by what was saved: what may "
        "have happened outside is not begun again unseen."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Compare the decisions of every incarnation with what it found at its start."""
        last = len(evidence.struck)
        return broken_if(
            fact
            for number, life in enumerate(evidence.incarnations)
            for fact in self._faults(life, ended=number >= last)
        )

    def _faults(self, life: EndedIncarnation, *, ended: bool) -> Iterator[str]:
        found = life.before.read(self.read_books, life.before.worker_dir)
        left = life.after.read(self.read_books, life.after.worker_dir)
        open_attempts = {row.attempt_id: row for row in found.attempts if row.state not in ENDED}
        made = left.decisions[len(found.decisions) :]
        decided: set[str] = set()
        for row in made:
            attempt = open_attempts.get(row.attempt_id)
            where = f"incarnation {life.number}, attempt {row.attempt_id!r}"
            if attempt is None:
                yield f"{where}: decided {row.decision!r}, though it was not open"
                continue
            if row.attempt_id in decided:
                yield f"{where}: decided twice"
            decided.add(row.attempt_id)
            right = self.policy(attempt)
            if row.decision != right:
                yield (
                    f"{where}: {attempt.capability} found {attempt.state}, "
                    f"decided {row.decision!r} instead of {right!r}"
                )
            if not row.reason:
                yield f"{where}: decided {row.decision!r} without a reason"
        if ended:
            for attempt_id in sorted(open_attempts.keys() - decided):
                yield f"incarnation {life.number}, attempt {attempt_id!r}: nothing was decided"


@dataclass(frozen=True, slots=True)
class RestartChangesNothing:
    """A second restart of a quiet worker changes nothing (REC-17).

    Attributes:
        worker_view: What must stay the same in the worker's directory.
        world_view: What must stay the same in the world's directory.
    """

    worker_view: View
    world_view: View = read_ledger
    name: str = "restart-changes-nothing"
    promise: str = "starting the quiet worker again changes nothing"
    remedy: str = (
        "Make recovery leave alone what is settled: nothing is written, sent or run when "
        "there is nothing to do."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Compare what was durable before and after the second restart."""
        before, after = evidence.settled, evidence.after_restart
        found = []
        if before.read(self.worker_view, before.worker_dir) != after.read(
            self.worker_view, after.worker_dir
        ):
            found.append("the worker's state changed")
        if before.read(self.world_view, before.world_dir) != after.read(
            self.world_view, after.world_dir
        ):
            found.append("the world's state changed")
        return broken_if(found)
