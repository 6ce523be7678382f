"""The log of a service's requests, which is everything that such a service durably knows.

What the service did, and how often it was asked what, follows from the requests and what became of
them. The service counts a request, applies its fault, logs it, and then answers; anybody can read
the log from outside.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from harness.model.canonical_json import canonical
from harness.model.errors import HarnessError
from harness.world.http_errors import ConnectionCut, Refused
from harness.world.sqlite import open_for_writing, reading
from harness.world.wire_faults import FaultPlan

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
    from pathlib import Path

    import aiosqlite

    from harness.model.canonical_json import JsonObject
    from harness.world.service import ServiceContext
    from harness.world.wire_faults import Fault

REFUSED: Final = "refused"
"""Outcome of a request that a fault refused before the service acted."""

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS requests (
    position INTEGER PRIMARY KEY, request TEXT NOT NULL, key TEXT NOT NULL, nth INTEGER NOT NULL,
    fault TEXT NOT NULL, outcome TEXT NOT NULL, body TEXT NOT NULL
);
"""
_INSERT: Final = (
    "INSERT INTO requests (position, request, key, nth, fault, outcome, body)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)

_SELECT: Final = (
    "SELECT position, request, key, nth, fault, outcome, body FROM requests ORDER BY position"
)


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A request and what became of it.

    Attributes:
        position: Place in the service's log, from 1.
        request: Which kind of request, as the service names it.
        key: Which one, as the service says for each kind.
        nth: Which of the requests of this kind with this key, from 1.
        fault: What happened to it on purpose, one of `harness.world.wire_faults.FaultKind`, or
            nothing.
        outcome: What became of it; `REFUSED` if the service never acted.
        body: What else the service has to remember of it.
    """

    position: int
    request: str
    key: str
    nth: int
    fault: str
    outcome: str
    body: JsonObject

    def row(self) -> tuple[str | int, ...]:
        """Return the values of its row in the log."""
        return (
            *(self.position, self.request, self.key, self.nth, self.fault, self.outcome),
            canonical(self.body),
        )


def read_requests(path: Path) -> tuple[LoggedRequest, ...]:
    """Read the log of a service, which may be open in another process, closed, or a copy.

    Args:
        path: The service's database, in a workspace's ``world/`` or a copy of it.

    Returns:
        The requests in the order in which they were served.

    Raises:
        HarnessError: There is no such database, or it cannot be read.
    """
    if not path.is_file():
        raise HarnessError(f"there is no {path.name} in {path.parent}: no service was open there")
    with reading(path) as db:
        return tuple(
            LoggedRequest(
                position, request, key, nth, fault, outcome, cast("JsonObject", json.loads(body))
            )
            for position, request, key, nth, fault, outcome, body in db.execute(_SELECT)
        )


class RequestLog:
    """The durable state of a service, which follows from the requests that it served.

    Args:
        file_name: The database's name in the world's directory.
        requests: The kinds of requests that the service knows.
        faults: What happens to some of them.
        enter: Called with each request, those of an earlier opening too, once it is durable: the
            service's memory of what it did.

    Raises:
        UsageError: The faults contradict themselves, or name a kind that is not known.
    """

    def __init__(
        self,
        file_name: str,
        requests: Sequence[str],
        faults: Iterable[Fault],
        enter: Callable[[LoggedRequest], None],
    ) -> None:
        self._file_name = file_name
        self._plan = FaultPlan(faults, requests)
        self._enter = enter
        self._size = 0
        self._counts: dict[tuple[str, str], int] = {}
        self._closed = False
        self._context: ServiceContext
        self._connection: aiosqlite.Connection

    async def open(self, context: ServiceContext) -> None:
        """Open the log, and go on from what is in it.

        Args:
            context: What the experiment gives to the service.
        """
        path = context.world_dir / self._file_name
        known = read_requests(path) if path.exists() else ()
        self._context = context
        self._connection = await open_for_writing(path, _TABLES)
        for logged in known:
            self._remember(logged)

    async def close(self) -> None:
        """Close the log; requests that still come are cut."""
        async with self._context.writing:
            self._closed = True
            await self._connection.close()

    @asynccontextmanager
    async def turn(self, request: str, key: str) -> AsyncIterator[Turn]:
        """Serve one request while no other changes durable state, with the fault that it is due.

        When the block has ended well and the reply is to be lost, the connection is cut.

        Args:
            request: Which kind of request.
            key: Which one.

        Yields:
            The turn; the service decides, keeps what became of the request, and records its effect.

        Raises:
            Refused: A fault refuses the request before the service acts.
            ConnectionCut: A fault loses the reply, or the service is closed.
        """
        async with self._context.writing:
            if self._closed:
                raise ConnectionCut
            nth = self._counts.get((request, key), 0) + 1
            fault = self._plan.at(request, key, nth)
            turn = Turn(self._keep, request, key, nth, fault or "")
            if fault == "refused":
                await turn.keep(REFUSED)
                raise Refused("unavailable", f"{request} {key!r} is refused this time; ask again")
            yield turn
        if fault == "reply_lost":
            raise ConnectionCut

    async def _keep(self, turn: Turn, outcome: str, body: JsonObject) -> None:
        logged = LoggedRequest(
            self._size + 1, turn.request, turn.key, turn.nth, turn.fault, outcome, body
        )
        # In autocommit mode a statement is a transaction.
        await self._connection.execute(_INSERT, logged.row())
        self._remember(logged)

    def _remember(self, logged: LoggedRequest) -> None:
        self._size = logged.position
        self._counts[logged.request, logged.key] = logged.nth
        self._enter(logged)


class Turn:
    """One request that is being served; made by `RequestLog.turn`.

    Args:
        keep: Makes a fact of it.
        request: Which kind of request.
        key: Which one.
        nth: Its number among those, from 1.
        fault: What happens to it, or nothing.
    """

    def __init__(
        self,
        keep: Callable[[Turn, str, JsonObject], Awaitable[None]],
        request: str,
        key: str,
        nth: int,
        fault: str,
    ) -> None:
        self.request = request
        self.key = key
        self.nth = nth
        self.fault = fault
        self._keep = keep

    async def keep(self, outcome: str, body: JsonObject | None = None) -> None:
        """Commit what became of the request; it is durable when this returns.

        Args:
            outcome: What became of it, in the service's words.
            body: What else has to be remembered.
        """
        await self._keep(self, outcome, body or {})
