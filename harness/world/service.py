"""What a service of the world is, and what it is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from aiohttp import web

    from harness.workload import Command, Workload
    from harness.world.ledger import EffectLedger


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a service plays, for one experiment.

    Attributes:
        world_dir: The workspace's ``world/``; the service keeps its durable state there.
        workload: What the experiment asks of the worker.
        ledger: The effect ledger; a service records in it what it did for the worker.
    """

    world_dir: Path
    workload: Workload
    ledger: EffectLedger


class Service(Protocol):
    """A part of the world that the worker reaches over HTTP.

    An instance serves one experiment: `open`, any number of requests and `offer` calls, `close`.
    State that the experiment is judged by is durable before a request is answered.
    """

    async def open(self, stage: Stage, routes: web.UrlDispatcher) -> None:
        """Prepare durable state, offer the workload's commands, and add the HTTP routes."""

    async def offer(self, command: Command) -> None:
        """Offer one more command while the worker may be connected."""

    async def close(self) -> None:
        """End every open stream and close durable state."""
