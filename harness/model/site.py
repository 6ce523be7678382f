"""The site of an incarnation: its directories, endpoint, identity and seed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.model.workload import Command

if TYPE_CHECKING:
    from typing import TypeAlias

    from harness.model.canonical_json import JsonObject

    PlainSite: TypeAlias = tuple[str, str, str, str, int, int, list[tuple[str, JsonObject]]]


@dataclass(frozen=True, slots=True)
class Site:
    """Everything that one incarnation of a worker is given.

    Attributes:
        worker_dir: Directory for everything that the worker keeps; it survives the incarnation.
        world_dir: The world's directory, for `harness.world.ledger.EffectLedger`.
        endpoint: Where the world's services listen: ``unix:PATH``, ``http://127.0.0.1:PORT``, or
            empty when the scenario has none.
        identity: Who this worker is; the same over all its incarnations.
        incarnation: Number of this incarnation in the experiment, from 1.
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


def no_warm_up(_site: Site) -> None:
    """Do nothing: importing the worker is warm-up enough."""
