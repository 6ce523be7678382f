"""A service of the world whose durable state is a log of its requests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web

    from harness.model.workload import Command
    from harness.world.ledger import EffectLedger
    from harness.world.service import ServiceContext
    from harness.world.services.request_log import RequestLog


class LoggedService(ABC):
    """Such a service, but for its routes; one instance serves one experiment.

    Args:
        log: Its log, not yet open.

    Attributes:
        log: Its log.
        ledger: The effect ledger, once the service is open.
    """

    log: RequestLog
    ledger: EffectLedger

    def __init__(self, log: RequestLog) -> None:
        self.log = log

    @abstractmethod
    def add_routes(self, routes: web.UrlDispatcher) -> None:
        """Add the service's routes."""

    async def open(self, context: ServiceContext, routes: web.UrlDispatcher) -> None:
        """Open the log, go on from what is in it, and add the routes.

        Args:
            context: What the experiment gives it.
            routes: Where the routes go.

        Raises:
            HarnessError: The log cannot be read.
        """
        await self.log.open(context)
        self.ledger = context.ledger
        self.add_routes(routes)

    async def offer(self, command: Command) -> None:  # noqa: B027 - the same for each of them
        """Do nothing: commands are the coordinator's."""

    async def close(self) -> None:
        """Close the log; requests that still come are cut."""
        await self.log.close()
