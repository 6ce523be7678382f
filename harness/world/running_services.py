"""The services of one experiment while they run: opened on a directory, reachable, closed."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from aiohttp import web

from harness.world.http_errors import ErrorMiddleware
from harness.world.http_fields import MAX_BODY_BYTES
from harness.world.ledger import EffectLedger
from harness.world.messages import SOCKET_NAME
from harness.world.service import KeepsStateElsewhere, ServiceContext
from harness.world.snapshot import copy_world

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.workload import Command
    from harness.world.messages import Open
    from harness.world.service import Service, SharedResources

_CLOSING_S = 0.05
"""How long a request that is being served may hold up the closing, in seconds. A worker that was
stopped in the middle of a request never finishes it."""


class RunningServices:
    """Services behind one HTTP endpoint; made by `open`.

    Args:
        context: What the services were given.
        guard: The outermost layer of their application.
        closing: Undoes the opening.
        endpoint: Where they listen, as `harness.model.site.Site` has it.
        services: The services.
    """

    def __init__(
        self,
        context: ServiceContext,
        guard: ErrorMiddleware,
        closing: AsyncExitStack,
        endpoint: str,
        services: tuple[Service, ...],
    ) -> None:
        self.guard = guard
        self.endpoint = endpoint
        self._context = context
        self._closing = closing
        self._services = services

    @classmethod
    async def open(cls, call: Open, shared: SharedResources) -> RunningServices:
        """Open services and listen.

        Args:
            call: Which services, on which directory, and how they are reached.
            shared: What outlives the services.

        Returns:
            The running services; they must be closed.
        """
        call.world_dir.mkdir(parents=True, exist_ok=True)
        ledger = EffectLedger(call.world_dir)
        context = ServiceContext(call.world_dir, call.workload, ledger, shared=shared)
        guard = ErrorMiddleware()
        application = web.Application(
            middlewares=[guard.middleware()], client_max_size=MAX_BODY_BYTES
        )
        application.on_response_prepare.append(guard.answered)
        services = tuple(make() for make in call.services)
        async with AsyncExitStack() as undo:
            # Undone in reverse, so the services end their streams before the runner waits for the
            # requests that are being served.
            runner = web.AppRunner(
                application, access_log=None, handle_signals=False, shutdown_timeout=_CLOSING_S
            )
            undo.push_async_callback(runner.cleanup)
            for service in services:
                await service.open(context, application.router)
                undo.push_async_callback(service.close)
            undo.callback(guard.close)
            await runner.setup()
            if call.transport == "unix":
                path = call.world_dir / SOCKET_NAME
                path.unlink(missing_ok=True)  # Left by a process that was killed.
                undo.callback(path.unlink, missing_ok=True)
                await web.UnixSite(runner, path).start()
                endpoint = f"unix:{path}"
            else:
                await web.TCPSite(runner, "127.0.0.1", 0).start()
                endpoint = f"http://127.0.0.1:{runner.addresses[0][1]}"
            return cls(context, guard, undo.pop_all(), endpoint, services)

    async def offer(self, command: Command) -> None:
        """Offer a command to every service."""
        await self.guard.catch_up()
        for service in self._services:
            await service.offer(command)

    async def snapshot(self, destination: Path) -> None:
        """Copy the directory while no service changes durable state.

        What a worker sent before it was stopped is in the copy.

        Args:
            destination: Where to; it must not exist.
        """
        await self.guard.catch_up()
        async with self._context.writing:
            copy_world(self._context.world_dir, destination)
            for service in self._services:
                if isinstance(service, KeepsStateElsewhere):
                    await service.snapshot(destination)

    async def close(self) -> None:
        """Stop listening, end open requests, close the services. The directory stays."""
        await self.guard.catch_up()
        await self._closing.aclose()
