"""Confirmation: what does not hold is run again, from the start and alone, before it is reported.

A schedule that comes out differently is `flaky`: neither a failure that anybody could run again,
nor a pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Protocol

from harness.model.result import Verdict
from harness.model.schedule import CONTROL

if TYPE_CHECKING:
    from harness.model.result import ExperimentResult, IncarnationTrace
    from harness.model.trace import Hit

CONTROL_RUNS_WITH_THREADS = 3
"""How often the control leg of a worker with threads is run, though it holds."""

MOST_RUNS = 3
"""How often an experiment is run at the most."""

_VIOLATIONS = 5


@dataclass(frozen=True, slots=True)
class Attempt:
    """An experiment that has been run once.

    Attributes:
        result: What it came to.
        shared: Whether anything was used that another experiment had found.
    """

    result: ExperimentResult
    shared: bool


class RunOnce(Protocol):
    """Runs an experiment once."""

    def __call__(self, *, alone: bool, repeats: ExperimentResult | None) -> Attempt:
        """Run it.

        Args:
            alone: Whether to share nothing with other experiments.
            repeats: What it came to before. If it comes to the same, that is what is reported, and
                what it left is kept.
        """


def confirmed(run: RunOnce) -> ExperimentResult:
    """Run an experiment until its result can be reported.

    One that held is believed, but for the control leg of a worker with threads, on which everything
    else rests: it is run three times. Of any other, two runs that shared nothing must have come to
    the same verdict by the same oracles.

    Args:
        run: Runs it once.

    Returns:
        The result of the last run, or one that is `FLAKY` with both histories in its note.
    """
    first = run(alone=False, repeats=None)
    if first.result.verdict is not Verdict.HELD:
        more = 2 if first.shared else 1
    elif first.result.schedule == CONTROL and has_threads(first.result):
        more = CONTROL_RUNS_WITH_THREADS - 1
    else:
        more = 0
    before = first.result
    for left in reversed(range(more)):
        now = run(alone=True, repeats=None if left else before).result
        if not same(before, now):
            return flaky(before, now)
        before = now
    return before


def same(first: ExperimentResult, second: ExperimentResult) -> bool:
    """Tell whether two runs of a schedule came to the same: one verdict, by the same oracles."""
    return (first.verdict, first.oracles) == (second.verdict, second.oracles)


def has_threads(result: ExperimentResult) -> bool:
    """Tell whether a worker reached a point outside its main thread."""
    return any(hit.thread for life in result.incarnations for hit in life.hits)


def flaky(first: ExperimentResult, second: ExperimentResult) -> ExperimentResult:
    """Return the result of a schedule that came out differently in two runs.

    Args:
        first: One run.
        second: The other.
    """
    note = "\n".join(
        [
            "run twice, the same schedule came out differently",
            f"first: {_came_to(first)}",
            f"then: {_came_to(second)}",
            first_difference(first.incarnations, second.incarnations),
        ]
    )
    fired = min(first.fired, second.fired, key=len)
    return replace(second, verdict=Verdict.FLAKY, violations=(), fired=fired, note=note)


def _came_to(result: ExperimentResult) -> str:
    found = [f"{v.oracle}: {v.message}" for v in result.violations]
    if len(found) > _VIOLATIONS:
        found[_VIOLATIONS:] = [f"and {len(found) - _VIOLATIONS} more"]
    why = "; ".join(found) or result.note
    return f"{result.verdict}: {why}" if why else str(result.verdict)


def first_difference(
    first: tuple[IncarnationTrace, ...], second: tuple[IncarnationTrace, ...]
) -> str:
    """Say where the traces of two runs first differ.

    Args:
        first: The incarnations of one run.
        second: The incarnations of the other.
    """
    for number, (one, other) in enumerate(zip_longest(first, second), start=1):
        if one is None or other is None:
            ran = "first" if other is None else "second"
            return f"only the {ran} run had an incarnation {number}"
        for at, (hit, its) in enumerate(zip_longest(one.hits, other.hits), start=1):
            if _place(hit) != _place(its):
                return (
                    f"the traces first differ in incarnation {number}, hit {at}: "
                    f"{_shown(hit)}, then {_shown(its)}"
                )
        if one.death != other.death:
            return f"incarnation {number} {one.death}, then {other.death}"
    return "the traces do not differ"


def _place(hit: Hit | None) -> tuple[str, dict[str, str]] | None:
    return None if hit is None else (hit.label, hit.context)


def _shown(hit: Hit | None) -> str:
    if hit is None:
        return "none"
    about = ",".join(f"{key}={value}" for key, value in hit.context.items())
    return f"{hit.label}[{about}]#{hit.hits['']}" if about else f"{hit.label}#{hit.hits['']}"
