"""The coordinator as a worker sees it: an HTTP client that keeps what it was answered."""

from __future__ import annotations

import asyncio
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

import aiohttp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from harness.model.canonical_json import JsonObject
    from harness.model.workload import Workload
    from harness.world.coordinator.facts import CoordinatorFacts
    from harness.world.messages import Transport
    from harness.world.service import Service

    HeaderFields = Mapping[str, str] | Iterable[tuple[str, str]]

DEADLINE_S = 5.0


class OpenWorld(Protocol):
    """What the fixture ``open_world`` gives."""

    def __call__(self, workload: Workload | None = None, transport: Transport = "unix") -> str:
        """Open a coordinator in the test's world directory and return its endpoint."""


class OpenServices(Protocol):
    """What the fixture ``open_services`` gives."""

    def __call__(self, *services: Callable[[], Service], at: Path | None = None) -> str:
        """Open services beside a coordinator and return their endpoint.

        They are in the test's world directory, or ``at`` another.
        """


class FactsNow(Protocol):
    """What the fixture ``facts_now`` gives."""

    def __call__(self) -> CoordinatorFacts:
        """Read the facts of the open coordinator."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the stream of commands."""

    number: int
    event: str
    data: Mapping[str, object]

    @property
    def command_id(self) -> object:
        """Which command it delivers."""
        return self.data.get("command_id")


@dataclass(frozen=True, slots=True)
class Reply:
    """Status and JSON of a reply."""

    status: int
    value: Mapping[str, object]

    @property
    def error_kind(self) -> object:
        """Kind of an error reply."""
        return cast("Mapping[str, object]", self.value["error"])["kind"]

    @property
    def error_message(self) -> str:
        """Message of an error reply."""
        return str(cast("Mapping[str, object]", self.value["error"])["message"])


@dataclass(frozen=True, slots=True)
class Download:
    """A reply that is not JSON."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool


class CommandReader:
    """Reads an open stream of commands."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self) -> Message | None:
        """Return the next message, or None at the end of the stream."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(DEADLINE_S):
            while line := (await self.response.content.readline()).decode():
                name, _, value = line.rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                elif fields:
                    data = json.loads(fields["data"])
                    return Message(int(fields.get("id", "0")), fields["event"], data)
        return None

    async def backlog(self) -> list[Message]:
        """Return the messages before ``caught-up``."""
        messages: list[Message] = []
        while (message := await self.next()) is not None and message.event == "command":
            messages.append(message)
        assert message is not None, "the stream ended before caught-up"
        assert message.event == "caught-up"
        return messages


class WorkerSide:
    """A client of the coordinator at an endpoint; a context manager."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._streams: list[aiohttp.ClientResponse] = []

    async def __aenter__(self) -> Self:
        kind, _, rest = self._endpoint.partition(":")
        unix = kind == "unix"
        self._base = "http://world" if unix else self._endpoint
        self.http = aiohttp.ClientSession(
            connector=aiohttp.UnixConnector(rest) if unix else aiohttp.TCPConnector(),
            timeout=aiohttp.ClientTimeout(total=DEADLINE_S),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for response in self._streams:
            response.close()
        await self.http.close()

    async def post(
        self, path: str, body: JsonObject | bytes, headers: HeaderFields | None = None
    ) -> Reply:
        """Post JSON, or bytes as they are."""
        data = io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
        async with self.http.post(self._base + path, data=data, headers=headers) as response:
            return await _reply(response)

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> Reply:
        """Get JSON."""
        async with self.http.get(self._base + path, headers=headers) as response:
            return await _reply(response)

    async def download(self, name: str, headers: Mapping[str, str] | None = None) -> Download:
        """Get a file, as far as it comes."""
        body = b""
        async with self.http.get(f"{self._base}/files/{name}", headers=headers) as response:
            whole = True
            try:
                while chunk := await response.content.readany():
                    body += chunk
            except aiohttp.ClientPayloadError:
                whole = False
            return Download(response.status, response.headers, body, whole)

    async def register(self, instance_id: str = "worker-a") -> str:
        """Register and return the session id."""
        reply = await self.post("/sessions", registration(instance_id))
        assert reply.status == 201
        return str(reply.value["session_id"])

    async def stream(self, session_id: str, last: int | None = None) -> CommandReader:
        """Open a stream of commands."""
        headers = {} if last is None else {"Last-Event-ID": str(last)}
        response = await self.http.get(
            f"{self._base}/sessions/{session_id}/commands", headers=headers
        )
        self._streams.append(response)
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        return CommandReader(response)

    async def ack(self, session_id: str, command_id: str) -> Reply:
        """Acknowledge a command."""
        return await self.post(f"/commands/{command_id}/ack", {"session_id": session_id})

    async def event(
        self,
        session_id: str,
        event_id: str,
        command_id: str,
        kind: str = "succeeded",
        body: JsonObject | None = None,
    ) -> Reply:
        """Send an event of the command's first attempt."""
        return await self.post("/events", event(session_id, event_id, command_id, kind, body))

    async def heartbeat(self, session_id: str, command_id: str) -> Reply:
        """Send a sign of life of the command's first attempt."""
        return await self.post(
            f"/attempts/{command_id}-1/heartbeat",
            {"session_id": session_id, "command_id": command_id, "progress": {"done": 1}},
        )


def registration(instance_id: str = "worker-a") -> JsonObject:
    """Return the body of a registration."""
    return {
        "instance_id": instance_id,
        "name": "worker",
        "node_id": "node-1",
        "inventory": {"compute": 1},
    }


def event(
    session_id: str,
    event_id: str,
    command_id: str,
    kind: str = "succeeded",
    body: JsonObject | None = None,
) -> JsonObject:
    """Return the body of an event of the command's first attempt."""
    return {
        "session_id": session_id,
        "event_id": event_id,
        "command_id": command_id,
        "attempt_id": f"{command_id}-1",
        "kind": kind,
        "body": body or {},
    }


async def _reply(response: aiohttp.ClientResponse) -> Reply:
    text = await response.text()
    return Reply(response.status, json.loads(text) if text else {})
