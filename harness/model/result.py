"""The result of an experiment."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from itertools import combinations
from typing import TYPE_CHECKING

from harness.model.canonical_json import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from harness.model.schedule import Moment, Schedule
    from harness.model.trace import Hit


class Verdict(StrEnum):
    """The verdict of an experiment; only `HELD` is a pass."""

    HELD = "held"
    BROKEN = "broken"
    NOT_FIRED = "not_fired"
    WRONG_DEATH = "wrong_death"
    HUNG = "hung"
    FLAKY = "flaky"
    UNKNOWN = "unknown"


class NotHeldError(AssertionError):
    """An experiment did not hold."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One fact that breaks a promise.

    Attributes:
        oracle: Name of the oracle that found it.
        message: The fact.
    """

    oracle: str
    message: str


@dataclass(frozen=True, slots=True)
class Fired:
    """A fault that is proved to have happened.

    Attributes:
        moment: Where.
        incarnation: In which incarnation, from 1.
    """

    moment: Moment
    incarnation: int


@dataclass(frozen=True, slots=True)
class IncarnationTrace:
    """The trace of one incarnation, as results have it.

    Attributes:
        number: From 1.
        hits: Every point that it reached, in order.
        death: How it ended, in words.
        image: Digest of the crash image, if it was struck and somebody asked for it.
    """

    number: int
    hits: tuple[Hit, ...]
    death: str
    image: str


def fingerprint(scenario: str, schedule: str, oracles: Sequence[str]) -> str:
    """Return the identity of a failure.

    Args:
        scenario: Name of its scenario.
        schedule: Text of its schedule.
        oracles: Names of the oracles that caught it, sorted.
    """
    return digest([scenario, schedule, list(oracles)])[:16]


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """One scenario under one schedule and one seed.

    Attributes:
        scenario: Name of the scenario.
        schedule: The schedule.
        seed: The seed.
        verdict: The outcome.
        violations: For `BROKEN`: what was found, by which oracle.
        fired: Every fault that is proved to have happened, in order.
        note: What the verdict does not say, for the reader: what happened, if it is neither `HELD`
            nor `BROKEN`, and what was left out.
        incarnations: What each incarnation did.
        survivors: Processes that were left when every incarnation was dead.
        outside: What the worker left outside of its workspace, as far as it is known; names are
            shown with ``*`` for what is likely to be drawn.
        seconds: How long it took, in seconds; not part of the outcome.
    """

    scenario: str
    schedule: Schedule
    seed: int
    verdict: Verdict
    violations: tuple[Violation, ...] = ()
    fired: tuple[Fired, ...] = ()
    note: str = ""
    incarnations: tuple[IncarnationTrace, ...] = ()
    survivors: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)

    @property
    def experiment_id(self) -> str:
        """Unique in a run: the scenario and its schedule."""
        return f"{self.scenario}[{str(self.schedule) or 'control'}]"

    @property
    def oracles(self) -> tuple[str, ...]:
        """Names of the oracles that found something, sorted."""
        return tuple(sorted({violation.oracle for violation in self.violations}))

    @property
    def fingerprint(self) -> str:
        """Identity of the failure, 16 hexadecimal digits; empty unless it is `BROKEN`.

        The same promise broken by the same schedule of the same scenario is the same failure,
        whatever the seed drew.
        """
        if self.verdict is not Verdict.BROKEN:
            return ""
        return fingerprint(self.scenario, str(self.schedule), self.oracles)

    def could_break(self, names: Iterable[str], most: int) -> Iterator[str]:
        """Give the fingerprints that this experiment would have if it broke some promises.

        Args:
            names: Names of the oracles of its scenario.
            most: How many of them at once.
        """
        known = sorted(names)
        schedule = str(self.schedule)
        for size in range(1, most + 1):
            for broken in combinations(known, size):
                yield fingerprint(self.scenario, schedule, broken)

    def raise_if_not_held(self) -> None:
        """Raise with everything that was found unless the verdict is `HELD`.

        Raises:
            NotHeldError: The verdict is another one.
        """
        if self.verdict is not Verdict.HELD:
            found = [f"{v.oracle}: {v.message}" for v in self.violations]
            head = f"{self.verdict}: {self.experiment_id}"
            raise NotHeldError("\n".join([head, *found, self.note]).rstrip())
