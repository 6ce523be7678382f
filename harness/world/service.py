"""Services of the world: their protocol, and what each is given."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from aiohttp import web

    from harness.model.workload import Command, Workload
    from harness.world.ledger import EffectLedger


class Closable(Protocol):
    """Something that must be closed."""

    async def close(self) -> None:
        """Close it."""


T = TypeVar("T", bound=Closable)


class SharedResources:
    """What is too slow to make for every experiment, connections for example.

    It is made once in the world's process, and closed when the process ends.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[type, str], Closable] = {}
        self._closing = AsyncExitStack()

    def get(self, kind: type[T], name: str, make: Callable[[], T]) -> T:
        """Return what is kept, or make and keep it.

        Args:
            kind: What it is.
            name: Which one.
            make: Makes it the first time.
        """
        kept = self._kept.get((kind, name))
        if isinstance(kept, kind):
            return kept
        made = make()
        self._kept[kind, name] = made
        self._closing.push_async_callback(made.close)
        return made

    async def close(self) -> None:
        """Close everything, the newest first."""
        self._kept.clear()
        await self._closing.aclose()


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """What a service is given for one experiment.

    Attributes:
        world_dir: The workspace's ``world/``; the service keeps its durable state there.
        workload: What the experiment asks of the worker.
        ledger: The effect ledger; a service records in it what it did for the worker.
        writing: Held by a service while it changes durable state, over everything that belongs
            together, and never while it waits for the worker. The host holds it while it copies
            the world, so a copy holds such a change wholly or not at all.
        shared: What outlives this experiment; closed by whoever made it.
    """

    world_dir: Path
    workload: Workload
    ledger: EffectLedger
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    shared: SharedResources = field(default_factory=SharedResources)


class Service(Protocol):
    """A part of the world that the worker reaches over HTTP.

    An instance serves one experiment: `open`, any number of requests and `offer` calls, `close`.
    State that the experiment is judged by is durable before a request is answered.

    A handler raises `harness.world.http_errors.Refused` for an error reply and
    `harness.world.http_errors.ConnectionCut` to cut the connection without a reply. Any other
    exception is a bug of the world: the host answers 500 and reports it to the owner.
    """

    async def open(self, context: ServiceContext, routes: web.UrlDispatcher) -> None:
        """Prepare durable state, offer the workload's commands, and add the HTTP routes.

        The world's directory may be a copy of an earlier one: the service goes on from there, and
        offers only those commands that it does not know.
        """

    async def offer(self, command: Command) -> None:
        """Offer one more command while the worker may be connected."""

    async def close(self) -> None:
        """End every open stream and close durable state."""


@runtime_checkable
class KeepsStateElsewhere(Protocol):
    """A service with durable state that is not in files of the world's directory.

    It is apart because most services have no such state. When the service is closed,
    its state is in the directory, like that of any other.
    """

    async def snapshot(self, destination: Path) -> None:
        """Add that state to a copy of the directory, such that `Service.open` goes on from there.

        The host holds `ServiceContext.writing` meanwhile.
        """
