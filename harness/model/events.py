"""What the engine tells while it works; it knows none of those who listen."""

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
class RunFinished:
    """Nothing more will come.

    Attributes:
        seconds: How long the run took, in seconds.
    """

    seconds: float


Event: TypeAlias = RunStarted | Planned | ExperimentFinished | RunFinished
EventHandler: TypeAlias = Callable[[Event], None]
