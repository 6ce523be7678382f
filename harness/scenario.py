"""What is tried: a worker, a workload, the oracles that judge it, and the expected outcome."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from harness.model.errors import UnknownNameError, UsageError
from harness.model.workload import Command

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from harness.model.canonical_json import JsonObject
    from harness.model.oracle import Oracle
    from harness.model.workload import Workload
    from harness.world.service import Service

    PlainSite: TypeAlias = tuple[str, str, str, str, int, int, list[tuple[str, JsonObject]]]

NAME = re.compile(r"[a-z0-9]+(?:[-_.][a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Site:
    """What one incarnation of a worker is given.

    Attributes:
        worker_dir: Directory for everything that the worker keeps; it survives the incarnation.
        world_dir: The world's directory, for `harness.world.ledger.EffectLedger`.
        endpoint: Where the world's services listen: ``unix:PATH``, ``http://127.0.0.1:PORT``, or
            empty when the scenario has none.
        identity: Who this worker is; the same over all its incarnations.
        incarnation: Number of this process life in the experiment, from 1.
        seed: Source of everything random.
        offered: Every command offered so far. Workers with a coordinator hear of them from there.
    """

    worker_dir: Path
    world_dir: Path
    endpoint: str
    identity: str
    incarnation: int
    seed: int
    offered: tuple[Command, ...]

    @property
    def plain(self) -> PlainSite:
        """The same in plain values, for another process."""
        return (
            str(self.worker_dir),
            str(self.world_dir),
            self.endpoint,
            self.identity,
            self.incarnation,
            self.seed,
            [(command.command_id, command.body) for command in self.offered],
        )

    @classmethod
    def from_plain(cls, plain: PlainSite) -> Site:
        """Make a site from what `plain` gave."""
        worker_dir, world_dir, endpoint, identity, incarnation, seed, offered = plain
        return cls(
            worker_dir=Path(worker_dir),
            world_dir=Path(world_dir),
            endpoint=endpoint,
            identity=identity,
            incarnation=incarnation,
            seed=seed,
            offered=tuple(Command(*command) for command in offered),
        )


@dataclass(frozen=True, slots=True)
class Pin:
    """The expected outcome of a scenario.

    Attributes:
        outcome: ``"holds"`` or ``"broken"``.
        oracle: For ``broken``: the oracle that must catch it.
    """

    outcome: str = "holds"
    oracle: str = ""

    def __str__(self) -> str:
        return f"{self.outcome}:{self.oracle}" if self.oracle else self.outcome


HOLDS = Pin()


def broken_by(oracle: str) -> Pin:
    """Return the pin of a known-bad worker: at least one experiment is broken by this oracle."""
    return Pin("broken", oracle)


def no_warm_up(_site: Site) -> None:
    """Warm nothing beyond the imports."""


@dataclass(frozen=True)
class Scenario:
    """A worker, a workload, oracles and a pin.

    Attributes:
        name: Unique name, lower-case words joined by ``-``, ``_`` or ``.``.
        worker: One process life: called in a fresh fork with its site; returning ends it well.
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

    Raises:
        UsageError: The name is not well formed, there is no oracle, or two have one name.
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
    summary: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise UsageError(
                f"scenario name {self.name!r} is not lower-case words joined by '-', '_' or '.'"
            )
        if not self.oracles:
            raise UsageError(f"scenario {self.name!r} has no oracle, so nothing could be broken")
        names = [oracle.name for oracle in self.oracles]
        if len(set(names)) < len(names):
            raise UsageError(f"scenario {self.name!r} has two oracles of one name: {names}")
        if self.pin.oracle and self.pin.oracle not in names:
            raise UnknownNameError("oracle", self.pin.oracle, names)
