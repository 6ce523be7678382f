"""The effects service: one effect per key, however often it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from harness.model.canonical_json import canonical
from harness.world.http_fields import read_fields

if TYPE_CHECKING:
    from harness.model.workload import Command
    from harness.world.service import ServiceContext

REPEAT = "-repeat"
"""Ends the kind under which the ledger keeps a request whose effect had happened before."""


class EffectsService:
    """``POST /effects`` with ``kind``, ``key`` and ``token``: an effect, idempotent by its key.

    The first request with a kind and a key takes effect: 201, and the ledger has it under its kind.
    A later one changes nothing: 200, and the ledger has it under its kind with `REPEAT`. So the
    ledger tells what happened, and also what was asked for again.
    """

    def __init__(self) -> None:
        self._known: set[tuple[str, str]] = set()
        self._context: ServiceContext

    async def open(self, context: ServiceContext, routes: web.UrlDispatcher) -> None:
        """Learn what has happened so far, and add the route.

        Args:
            context: What the experiment gives it.
            routes: Where the route goes.
        """
        self._context = context
        self._known = {(effect.kind, effect.key) for effect in context.ledger.effects()}
        routes.add_post("/effects", self._apply)

    async def offer(self, command: Command) -> None:
        """Leave commands to the coordinator."""

    async def close(self) -> None:
        """Keep nothing open."""

    async def _apply(self, request: web.Request) -> web.Response:
        fields = await read_fields(request)
        kind, key, token = (fields.text(name) for name in ("kind", "key", "token"))
        async with self._context.writing:
            repeated = (kind, key) in self._known
            self._context.ledger.record(f"{kind}{REPEAT}" if repeated else kind, key, token)
            self._known.add((kind, key))
        text = canonical({"repeated": repeated})
        return web.json_response(text=text, status=200 if repeated else 201)
