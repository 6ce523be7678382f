"""Events of a run, in the order in which they come; the engine knows no consumer of them.

A run that goes well gives `RunStarted`, a `ScenarioStarted` for each scenario, rounds of `Planned`
and `ExperimentFinished`, with a `ScenarioFinished` where a scenario has no further round; in a
run of a tier `ComparingStarted` and `ExperimentCompared`; if
something broke after several crashes, `ShrinkingStarted`, `ShorterTried` and `FailureShrunk`; and
`RunFinished`. One that does not has `Interrupted` or `RunFailed` somewhere before `RunFinished`,
which is the last event of every run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from harness.model.result import ExperimentResult


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins.

    Attributes:
        scenarios: Names of the scenarios.
        tier: The tier.
        seed: The seed.
        lanes: How many experiments run at once.
    """

    scenarios: tuple[str, ...]
    tier: str
    seed: int
    lanes: int


@dataclass(frozen=True, slots=True)
class ScenarioStarted:
    """The experiments of a scenario begin.

    Attributes:
        scenario: Its name.
    """

    scenario: str


@dataclass(frozen=True, slots=True)
class Planned:
    """More experiments are known to come.

    Attributes:
        experiments: How many more.
    """

    experiments: int


@dataclass(frozen=True, slots=True)
class ExperimentFinished:
    """An experiment is over.

    Attributes:
        result: What it came to.
    """

    result: ExperimentResult


@dataclass(frozen=True, slots=True)
class ScenarioFinished:
    """A scenario has no experiment left to run.

    Attributes:
        scenario: Its name.
        experiments: How many it had.
    """

    scenario: str
    experiments: int


@dataclass(frozen=True, slots=True)
class ComparingStarted:
    """A sample of the experiments is run with an interpreter per incarnation from now on.

    Attributes:
        experiments: How many.
    """

    experiments: int


@dataclass(frozen=True, slots=True)
class ExperimentCompared:
    """An experiment of that sample is over; it is no part of the record's experiments.

    Attributes:
        result: What it came to.
    """

    result: ExperimentResult


@dataclass(frozen=True, slots=True)
class ShrinkingStarted:
    """Shorter schedules that break the same promises are looked for from now on.

    Attributes:
        failures: How many failures are shrunk.
        most: How many experiments this may take; fewer where the result is known already.
    """

    failures: int
    most: int


@dataclass(frozen=True, slots=True)
class ShorterTried:
    """An experiment of shrinking is over; it is no part of the record's experiments.

    Attributes:
        result: What it came to.
    """

    result: ExperimentResult


@dataclass(frozen=True, slots=True)
class FailureShrunk:
    """The shortest schedule of a failure has been looked for.

    Attributes:
        fingerprint: The failure.
        schedule: The shortest schedule that was found, as text; maybe the one it had.
    """

    fingerprint: str
    schedule: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The run was asked to stop; what has finished so far is recorded.

    Attributes:
        why: By what, in words.
    """

    why: str


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The harness itself failed; what has finished before is recorded.

    Attributes:
        error: The error, in words.
    """

    error: str


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The last event of every run.

    Attributes:
        seconds: How long the run took, in seconds.
    """

    seconds: float


Event: TypeAlias = (
    RunStarted
    | ScenarioStarted
    | Planned
    | ExperimentFinished
    | ScenarioFinished
    | ComparingStarted
    | ExperimentCompared
    | ShrinkingStarted
    | ShorterTried
    | FailureShrunk
    | Interrupted
    | RunFailed
    | RunFinished
)
EventHandler: TypeAlias = Callable[[Event], None]


def ignore(_event: Event) -> None:
    """Handle an event by doing nothing."""
