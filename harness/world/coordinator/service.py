"""The coordinator: gives commands to the worker and hears what became of them.

Its protocol is docs/coordinator.md. Everything that happens is a fact: decided by the books,
committed to the store, entered into the books, and only then answered.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from aiohttp import web

from harness.model.canonical_json import canonical
from harness.model.errors import UsageError
from harness.model.workload import ReplyLost
from harness.world.coordinator.facts import (
    ENDING_KINDS,
    Ack,
    CoordinatorFacts,
    Event,
    Heartbeat,
    OfferedCommand,
    Refusal,
    Session,
    read_facts,
)
from harness.world.coordinator.schema import FILE_NAME
from harness.world.coordinator.state import CoordinatorState
from harness.world.coordinator.store import open_store
from harness.world.coordinator.stream import CAUGHT_UP, CommandStream, message
from harness.world.http_errors import ConnectionCut, Refused, json_reply
from harness.world.http_fields import path_text, read_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from harness.model.canonical_json import JsonObject
    from harness.model.workload import Command, Exchange
    from harness.world.coordinator.facts import Fact
    from harness.world.coordinator.store import FactStore
    from harness.world.service import ServiceContext

DATABASE_VARIABLE = "CRASH_HARNESS_COORDINATOR_DB"
"""Environment variable with the URL of the database of `Coordinator.from_environment`."""

_MOST_DIGITS = 18
"""Of a delivery's number; SQLite's integers end there."""


class Coordinator:
    """The service that `docs/coordinator.md` describes; one instance serves one experiment.

    Args:
        database: Where the facts are while it is open, as
            `harness.world.coordinator.store.open_store` has it.
    """

    def __init__(self, database: str = "") -> None:
        self._database = database
        self._streams: list[CommandStream] = []
        self._context: ServiceContext
        self._store: FactStore
        self._books: CoordinatorState
        self._closed = False

    @classmethod
    def from_environment(cls) -> Coordinator:
        """Make a coordinator on the database that `DATABASE_VARIABLE` names, else on SQLite."""
        return cls(os.environ.get(DATABASE_VARIABLE, ""))

    async def open(self, context: ServiceContext, routes: web.UrlDispatcher) -> None:
        """Open the facts, offer the commands that are not known yet, and add the routes.

        Args:
            context: What the experiment gives it.
            routes: Where the routes go.

        Raises:
            UsageError: A command has the id of another one, or there is no such database.
            HarnessError: The database cannot be opened, or the facts are not in the directory.
        """
        exists = (context.world_dir / FILE_NAME).exists()
        known = read_facts(context.world_dir) if exists else CoordinatorFacts()
        self._context = context
        self._books = CoordinatorState(known)
        self._store = await open_store(self._database, context, known)
        try:
            await self._enter_commands(context.workload.commands)
        except BaseException:
            await self._store.close()
            raise
        routes.add_post("/sessions", self._register)
        routes.add_get("/sessions/{session_id}/commands", self._stream, allow_head=False)
        routes.add_post("/commands/{command_id}/ack", self._ack)
        routes.add_post("/commands/{command_id}/refusal", self._refusal)
        routes.add_get("/instances/{instance_id}", self._instance)
        routes.add_get("/sessions/{session_id}/waiting", self._waiting, allow_head=False)
        routes.add_post("/events", self._event)
        routes.add_post("/attempts/{attempt_id}/heartbeat", self._heartbeat)
        routes.add_get("/commands", self._list, allow_head=False)

    async def offer(self, command: Command) -> None:
        """Offer a command, and send it on every open stream; a known one is not offered again.

        Args:
            command: What to do.

        Raises:
            UsageError: Another command has this id.
        """
        async with self._context.writing:
            if not await self._enter_commands((command,)):
                return
            streams = [stream for stream in self._streams if stream.connected]
            for gone in (stream for stream in self._streams if not stream.connected):
                gone.end()
            self._streams = streams
            await self._send(streams, (command.command_id,))

    async def snapshot(self, destination: Path) -> None:
        """Complete a copy of the world's directory by facts that are not in files.

        Args:
            destination: The copy.
        """
        await self._store.snapshot(destination)

    async def close(self) -> None:
        """End every stream and close the facts."""
        async with self._context.writing:
            self._closed = True
            for stream in self._streams:
                stream.end()
            self._streams.clear()
            await self._store.close()

    async def _register(self, request: web.Request) -> web.Response:
        fields = await read_fields(request)
        instance_id, name, node_id = (
            fields.text(key) for key in ("instance_id", "name", "node_id")
        )
        inventory = fields.object("inventory")
        async with self._context.writing:
            self._require_open()
            books = self._books
            session_id = f"session-{len(books.sessions) + 1}"
            session = Session(books.position + 1, session_id, instance_id, name, node_id, inventory)
            await self._keep((session,))
            nth = books.count("register", instance_id)
        self._lose("register", instance_id, nth)
        return json_reply({"session_id": session_id}, 201)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        last_number = _last_event_id(request)
        async with self._context.writing:
            self._require_open()
            session_id = self._known_session(request.match_info["session_id"])
            stream = CommandStream(request, session_id)
            await self._send((stream,), self._books.backlog(last_number))
            stream.put(CAUGHT_UP)
            self._streams.append(stream)
        try:
            return await stream.run()
        finally:
            if stream in self._streams:
                self._streams.remove(stream)

    async def _ack(self, request: web.Request) -> web.Response:
        fields = await read_fields(request)
        session_id = fields.text("session_id")
        async with self._context.writing:
            self._require_open()
            self._known_session(session_id)
            command_id = self._known_command(request.match_info["command_id"])
            books = self._books
            repeated = command_id in books.acknowledged
            ack = Ack(books.position + 1, command_id, session_id, repeated)
            await self._keep((ack,))
            nth = books.count("ack", command_id)
        self._lose("ack", command_id, nth)
        return web.Response(status=204)

    async def _refusal(self, request: web.Request) -> web.Response:
        fields = await read_fields(request)
        session_id, reason = fields.text("session_id"), fields.text("reason")
        async with self._context.writing:
            self._require_open()
            self._known_session(session_id)
            command_id = self._known_command(request.match_info["command_id"])
            books = self._books
            refusal = Refusal(books.position + 1, command_id, session_id, reason)
            await self._keep((refusal,))
            nth = books.count("refusal", command_id)
        self._lose("refusal", command_id, nth)
        return web.Response(status=204)

    async def _instance(self, request: web.Request) -> web.Response:
        instance_id = path_text(request, "instance_id")
        count = list(self._books.sessions.values()).count(instance_id)
        return web.json_response(text=canonical({"sessions": count}))

    async def _waiting(self, request: web.Request) -> web.Response:
        books = self._books
        self._known_session(request.match_info["session_id"])
        commands: list[JsonObject] = [
            {**books.commands[command_id].body, "command_id": command_id}
            for command_id in books.backlog(None)
        ]
        return json_reply({"commands": commands})

    async def _event(self, request: web.Request) -> web.Response:
        fields = await read_fields(request)
        session_id, event_id, command_id, attempt_id, kind = (
            fields.text(key)
            for key in ("session_id", "event_id", "command_id", "attempt_id", "kind")
        )
        body = fields.object("body")
        async with self._context.writing:
            self._require_open()
            self._known_session(session_id)
            self._known_command(command_id)
            books = self._books
            receipt = books.receipt(
                Event(books.position + 1, event_id, session_id, command_id, attempt_id, kind, body)
            )
            await self._keep((receipt,))
            if receipt.outcome == "accepted" and kind in ENDING_KINDS:
                self._context.ledger.record("command_end", command_id, event_id)
            nth = books.count("event", command_id)
        self._lose("event", command_id, nth)
        match receipt.outcome:
            case "accepted":
                return web.Response(status=201)
            case "repeated":
                return web.Response(status=200)
            case "conflicting":
                raise Refused("conflict", f"event {event_id!r} is known with other content")

    async def _heartbeat(self, request: web.Request) -> web.Response:
        fields = await read_fields(request)
        session_id, command_id = fields.text("session_id"), fields.text("command_id")
        progress = fields.object("progress")
        async with self._context.writing:
            self._require_open()
            self._known_session(session_id)
            self._known_command(command_id)
            books = self._books
            attempt_id = path_text(request, "attempt_id")
            heartbeat = Heartbeat(books.position + 1, attempt_id, command_id, session_id, progress)
            await self._keep((heartbeat,))
            nth = books.count("heartbeat", command_id)
        self._lose("heartbeat", command_id, nth)
        return web.Response(status=204)

    async def _list(self, _request: web.Request) -> web.Response:
        books = self._books
        commands: list[JsonObject] = [
            {
                "command_id": command_id,
                "acknowledged": command_id in books.acknowledged,
                "ended": command_id in books.ended,
            }
            for command_id in books.commands
        ]
        return json_reply({"commands": commands})

    async def _keep(self, facts: Sequence[Fact]) -> None:
        await self._store.add(facts)
        self._books.enter(facts)

    async def _enter_commands(self, commands: Iterable[Command]) -> bool:
        """Enter those commands that are not known yet; say whether there was one."""
        books = self._books
        new: dict[str, OfferedCommand] = {}
        for command in commands:
            known = books.commands.get(command.command_id) or new.get(command.command_id)
            if known is None:
                position = books.position + len(new) + 1
                new[command.command_id] = OfferedCommand(position, command.command_id, command.body)
            elif canonical(known.body) != canonical(command.body):
                raise UsageError(f"command {command.command_id!r} is known with another body")
        await self._keep(tuple(new.values()))
        return bool(new)

    async def _send(self, streams: Sequence[CommandStream], command_ids: Sequence[str]) -> None:
        """Commit that commands are delivered on streams, and put them there."""
        books = self._books
        twice = self._context.workload.twice
        pairs = [
            (stream, command_id)
            for stream in streams
            for known in command_ids
            for command_id in ([known, known] if known in twice else [known])
        ]
        deliveries = books.deliveries((stream.session_id, known) for stream, known in pairs)
        await self._keep(deliveries)
        for (stream, command_id), delivery in zip(pairs, deliveries, strict=True):
            stream.put(message(delivery, books.commands[command_id]))

    def _require_open(self) -> None:
        if self._closed:
            raise ConnectionCut

    def _known_session(self, session_id: str) -> str:
        if session_id not in self._books.sessions:
            raise Refused("not_found", f"there is no session {session_id!r}")
        return session_id

    def _known_command(self, command_id: str) -> str:
        if command_id not in self._books.commands:
            raise Refused("not_found", f"there is no command {command_id!r}")
        return command_id

    def _lose(self, exchange: Exchange, key: str, nth: int) -> None:
        if ReplyLost(exchange, key, nth) in self._context.workload.lost:
            raise ConnectionCut


def _last_event_id(request: web.Request) -> int | None:
    text = request.headers.get("Last-Event-ID")
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
        raise Refused("invalid", "header 'Last-Event-ID' is not the number of a delivery")
    return int(text)
