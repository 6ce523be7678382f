"""The writing side of a service's log: a request is counted, struck, logged, and then answered."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from harness.world.http_errors import ConnectionCut, Refused
from harness.world.services.logged_requests import (
    INSERT,
    REFUSED,
    TABLES,
    LoggedRequest,
    read_requests,
)
from harness.world.sqlite import open_for_writing
from harness.world.wire_faults import FaultPlan

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

    import aiosqlite

    from harness.model.canonical_json import JsonObject
    from harness.world.service import ServiceContext
    from harness.world.wire_faults import Fault


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
        self._stage: ServiceContext
        self._connection: aiosqlite.Connection

    async def open(self, stage: ServiceContext) -> None:
        """Open the log, and go on from what is in it.

        Args:
            stage: Where the service plays.
        """
        path = stage.world_dir / self._file_name
        known = read_requests(path) if path.exists() else ()
        self._stage = stage
        self._connection = await open_for_writing(path, TABLES)
        for logged in known:
            self._remember(logged)

    async def close(self) -> None:
        """Close the log; requests that still come are cut."""
        async with self._stage.writing:
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
        async with self._stage.writing:
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
        await self._connection.execute(INSERT, logged.row())
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
