"""Scenarios: a worker, a workload, the oracles that judge it, and the expected outcome."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from harness.model.bounds import USUAL_BOUNDS
from harness.model.errors import UnknownNameError, UsageError
from harness.model.site import no_warm_up
from harness.model.starts_again import STARTS_AGAIN
from harness.scenario_fields import check_fields, check_name, check_oracle, drawn_workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.model.bounds import Bounds
    from harness.model.oracle import Oracle
    from harness.model.site import Site
    from harness.model.workload import Workload
    from harness.world.service import Service


TierName: TypeAlias = Literal["smoke", "full", "deep"]
"""Name of a tier (`harness.explore.tiers`)."""

TIER_NAMES: tuple[TierName, ...] = get_args(TierName)

PIN_OUTCOMES = ("holds", "broken")


@dataclass(frozen=True, slots=True)
class Pin:
    """The expected outcome of a scenario.

    Attributes:
        outcome: ``"holds"`` or ``"broken"``.
        oracle: For ``broken``: the oracle that must catch it.
        tier: For ``broken``: the tier that must catch it, which is the one that is run.

    Raises:
        UnknownNameError: The outcome or the tier is not known.
    """

    outcome: str = "holds"
    oracle: str = ""
    tier: TierName = "smoke"

    def __post_init__(self) -> None:
        for word in (self.outcome, self.oracle, self.tier):
            if not isinstance(word, str):
                raise UsageError(f"a pin is made of texts, and {word!r} is not one")
        if self.outcome not in PIN_OUTCOMES:
            raise UnknownNameError("outcome of a pin", self.outcome, PIN_OUTCOMES)
        if self.tier not in TIER_NAMES:
            raise UnknownNameError("tier", self.tier, TIER_NAMES)

    def __str__(self) -> str:
        if not self.oracle:
            return self.outcome
        return f"{self.outcome}:{self.oracle}" + ("" if self.tier == "smoke" else f"@{self.tier}")


HOLDS = Pin()


def broken_by(oracle: str, tier: TierName = "smoke") -> Pin:
    """Return the pin of a known-bad worker: at least one experiment is broken by this oracle.

    Args:
        oracle: Name of an oracle of the scenario, or ``starts-again``.
        tier: The smallest tier that catches it. A fault that needs a later hit of a point, or a
            second crash, is found by ``full``. This tier is run, whatever tier a run is asked for.
    """
    return Pin("broken", oracle, tier)


@dataclass(frozen=True)
class Scenario:
    """A worker, a workload, oracles and a pin.

    Attributes:
        name: Unique name, lower-case words joined by ``-``, ``_`` or ``.``.
        worker: One process life: called in a process of its own with its site; returning ends it
            well.
        workload: Draws the workload from a seed.
        oracles: What must hold.
        pin: Expected outcome.
        points: Packages or modules, by import name, that declare the worker's points.
        must_reach_all: Whether a declared point that is never reached turns the run red.
        together: Scenarios with the same word here reach the declared points together: a point
            that another of them reached in the same run is not missed. Empty: alone.
        services: Makers of the world's services, called once per experiment.
        quiet_at: Label of the point that the worker hits when nothing is left to do; empty for a
            worker that ends by itself when it is done.
        warm: Run once in the supervisor before the first fork; leaves no thread behind.
        strike: Labels to strike; empty for every label that is reached.
        transport: How the services listen: a Unix socket, or TCP on the loopback.
        deadline_s: Longest wait for one step of an incarnation, in seconds.
        fresh: Whether each incarnation is an interpreter of its own, started with the worker's
            modules not yet imported, and not a fork of one that has imported them: what a module
            makes at import (an id, a start time, a cache) is then made anew in each, as in a real
            restart. It takes as long as a start takes; `warm` is not run in it.
        bounds: What an incarnation may take of the machine.

    Raises:
        UsageError: A field is not what it should be, there is no oracle, or two have one name.
        UnknownNameError: The pin names an oracle that the scenario does not have.
    """

    name: str
    worker: Callable[[Site], None]
    workload: Callable[[int], Workload]
    oracles: tuple[Oracle, ...]
    pin: Pin = HOLDS
    points: tuple[str, ...] = ()
    must_reach_all: bool = True
    together: str = ""
    services: tuple[Callable[[], Service], ...] = ()
    quiet_at: str = ""
    warm: Callable[[Site], None] = no_warm_up
    strike: tuple[str, ...] = ()
    transport: Literal["unix", "tcp"] = "unix"
    deadline_s: float = 10.0
    fresh: bool = False
    bounds: Bounds = USUAL_BOUNDS

    def __post_init__(self) -> None:
        check_name(self.name)
        where = f"scenario {self.name!r}"
        check_fields(where, {field.name: getattr(self, field.name) for field in fields(self)})
        if not isinstance(self.pin, Pin):
            raise UsageError(f"{where}: its pin is {self.pin!r}, not HOLDS or broken_by(...)")
        if not self.oracles:
            raise UsageError(f"scenario {self.name!r} has no oracle, so nothing could be broken")
        for oracle in self.oracles:
            check_oracle(where, oracle)
        names = [oracle.name for oracle in self.judges]
        if len(set(names)) < len(names):
            raise UsageError(f"scenario {self.name!r} has two oracles of one name: {names}")
        if self.pin.oracle and self.pin.oracle not in names:
            raise UnknownNameError("oracle", self.pin.oracle, names)

    def drawn_workload(self, seed: int) -> Workload:
        """Return the workload that a seed draws.

        Raises:
            WorkloadError: `workload` raises an error, or gives something else.
        """
        return drawn_workload(self.name, self.workload, seed)

    @property
    def judges(self) -> tuple[Oracle, ...]:
        """Every oracle that judges an experiment: `starts-again`, and those of the scenario."""
        return (STARTS_AGAIN, *(oracle for oracle in self.oracles if oracle != STARTS_AGAIN))
