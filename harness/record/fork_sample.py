"""The sample: some experiments of a scenario, run again with an interpreter per incarnation.

A forked incarnation has what the worker's modules made when they were imported, as all the others
do; an interpreter of its own makes it anew. Where a verdict depends on that, the scenario is
inconclusive, for a real restart is no fork.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.result import ExperimentResult
    from harness.record.run_schema import ForkSampleRow

NOT_COME_TO = "this run did not come to it"


@dataclass(frozen=True, slots=True)
class Comparison:
    """An experiment, once in forks and once with an interpreter per incarnation.

    Attributes:
        forked: What it came to in forks.
        fresh: What it came to with an interpreter per incarnation.
        forked_again: Where the two differ: the one in forks once more.
        fresh_again: Where the two differ: the other one once more.
    """

    forked: ExperimentResult
    fresh: ExperimentResult
    forked_again: ExperimentResult | None = None
    fresh_again: ExperimentResult | None = None

    @property
    def agrees(self) -> bool:
        """Whether both came to the same verdict, by the same oracles.

        Messages may differ: they name whichever of several equal things comes first.
        """
        return _same(self.forked, self.fresh)

    @property
    def why_inconclusive(self) -> str:
        """What the difference means for the scenario; empty if there is none."""
        if self.agrees:
            return ""
        what = str(self.forked.schedule) or "the control leg"
        for how, first, second in (
            ("in a fork", self.forked, self.forked_again),
            ("with an interpreter per incarnation", self.fresh, self.fresh_again),
        ):
            if second is not None and not _same(first, second):
                return f"run twice {how}, {what} is {_said(first)}, and then {_said(second)}"
        return (
            f"with an interpreter per incarnation, {what} is {_said(self.fresh)}, and "
            f"{_said(self.forked)} in a fork: something that is made at import outlives the kill; "
            "see Scenario.fresh"
        )


@dataclass(frozen=True, slots=True)
class ForkSample:
    """The comparisons of a scenario.

    Attributes:
        comparisons: The control leg first.
        why_not: Why there are none, in words; empty if there are.
    """

    comparisons: tuple[Comparison, ...] = ()
    why_not: str = NOT_COME_TO

    def inconclusive(self) -> Iterator[str]:
        """Give every reason why the verdicts in forks are not to be relied on."""
        for comparison in self.comparisons:
            if why := comparison.why_inconclusive:
                yield why

    @property
    def row(self) -> ForkSampleRow:
        """What the record says of it."""
        return {
            "experiments": [
                {
                    "schedule": str(comparison.forked.schedule),
                    "forked": comparison.forked.verdict.value,
                    "fresh": comparison.fresh.verdict.value,
                    "oracles": list(comparison.fresh.oracles),
                    "agrees": comparison.agrees,
                }
                for comparison in self.comparisons
            ],
            "why_not": self.why_not,
        }


NO_SAMPLE = ForkSample()


def _same(one: ExperimentResult, other: ExperimentResult) -> bool:
    return (one.verdict, one.oracles) == (other.verdict, other.oracles)


def _said(result: ExperimentResult) -> str:
    found = "; ".join(f"{v.oracle}: {v.message}" for v in result.violations[:1])
    why = found or result.note.partition("\n")[0]
    return f"{result.verdict} ({why})" if why else str(result.verdict)
