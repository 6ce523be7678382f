"""A second, plain planner: what to skip and what to run, by the letter of the rule.

It is written from the requirements alone and shares nothing with any worker's
planner, so that an oracle can compare the two. It is quadratic and more; graphs of experiments are
small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from harness.oracles.mailbox.worker_state import SnapshotRow, StepRow

TERMINAL = frozenset({"completed", "failed", "cancelled"})
"""States of a run that has ended and does not reopen by itself (AMB-6)."""


@dataclass(frozen=True, slots=True)
class NaivePlan:
    """What a worker has to do with a run.

    Attributes:
        skip: Finished and trusted steps.
        run: Every other step; empty when `blocked`.
        blocked: The run has ended and something is unfinished: nothing may happen (PLN-17).
        before: Per step, the steps whose completion it waits for.
        hopeless: Steps that can never be trusted: they name a step that is missing, wait for
            themselves, or wait for such a step (STP-10, STP-11, STP-16).
    """

    skip: frozenset[str]
    run: frozenset[str]
    blocked: bool
    before: Mapping[str, frozenset[str]]
    hopeless: frozenset[str]

    @property
    def finished(self) -> bool:
        """Whether nothing is left to run."""
        return not self.run and not self.blocked


def plan(steps: Sequence[StepRow], snapshot: SnapshotRow | None) -> NaivePlan:
    """Plan a run.

    Args:
        steps: Its graph.
        snapshot: How far it has come, or None.
    """
    kept: dict[str, StepRow] = {}
    for step in steps:
        if step.step_id:
            kept.setdefault(step.step_id, step)
    before: dict[str, frozenset[str]] = {}
    for place, (step_id, step) in enumerate(kept.items()):
        if step.depends_on:
            before[step_id] = frozenset(step.depends_on)
        elif step.isolated:
            before[step_id] = frozenset()
        else:
            before[step_id] = frozenset(list(kept)[:place])
    skip = _reachable(before, () if snapshot is None else snapshot.done)
    run = frozenset(kept) - skip
    blocked = bool(run) and snapshot is not None and snapshot.status in TERMINAL
    hopeless = frozenset(kept) - _reachable(before, kept)
    if blocked:
        skip = run = frozenset()
    return NaivePlan(skip, run, blocked, before, hopeless)


def _reachable(before: Mapping[str, frozenset[str]], done: Collection[str]) -> frozenset[str]:
    """Return the least set of done steps of which every predecessor is in the set."""
    trusted: frozenset[str] = frozenset()
    while True:
        more = frozenset(s for s, waits in before.items() if s in done and waits <= trusted)
        if more == trusted:
            return trusted
        trusted = more
