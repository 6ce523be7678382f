"""The worker's ports to the network, in memory, with failures on order."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import TYPE_CHECKING

from planned_faults import Faults

from worker_under_test.domain.registration import Session
from worker_under_test.ports.remote import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_under_test.domain.attempt import Attempt
    from worker_under_test.domain.event import Event
    from worker_under_test.domain.json_value import JsonObject
    from worker_under_test.domain.progress import Progress
    from worker_under_test.domain.registration import Registration
    from worker_under_test.ports.command_stream import Delivery


class FakeControl:
    """A `ControlPlane` that remembers."""

    def __init__(self, log: list[str]) -> None:
        self.faults = Faults(log)
        self.sessions = 0
        self.sent: list[Event] = []
        self.sent_under: list[str] = []
        self.refused: list[tuple[str, str]] = []

    async def register(self, registration: Registration) -> Session:
        """Number a session."""
        self.faults.call("register", registration.instance_id)
        self.sessions += 1
        return Session(f"session-{self.sessions}")

    async def acknowledge(self, session: Session, command_id: str) -> None:
        """Note an ACK."""
        self.faults.call("acknowledge", command_id)

    async def refuse(self, session: Session, command_id: str, reason: str) -> None:
        """Note a refusal."""
        self.refused.append((command_id, reason))
        self.faults.call("refuse", command_id)

    async def send_event(self, session: Session, event: Event) -> None:
        """Note an event; it counts as stored even if the reply is planned to be lost."""
        self.sent.append(event)
        self.sent_under.append(session.session_id)
        self.faults.call("send_event", event.event_id)

    async def heartbeat(self, session: Session, attempt: Attempt, progress: Progress) -> None:
        """Note a heartbeat."""
        self.faults.call("heartbeat", attempt.command.command_id)

    async def close(self) -> None:
        """Note the call."""
        self.faults.call("close_control")


class FakeStream:
    """A `CommandStream` that a test feeds."""

    def __init__(self, log: list[str]) -> None:
        self.faults = Faults(log)
        self.backlogs: deque[list[Delivery]] = deque()
        self.held: list[Delivery] = []
        self.live: asyncio.Queue[Delivery | Exception] = asyncio.Queue()

    async def open(self, session: Session) -> list[Delivery]:
        """Return the next planned backlog, or an empty one."""
        self.faults.call("open_stream", session.session_id)
        return self.backlogs.popleft() if self.backlogs else []

    async def waiting(self, session: Session) -> list[Delivery]:
        """Return what the test says is waiting."""
        self.faults.call("waiting")
        return list(self.held)

    async def next(self) -> Delivery:
        """Wait for what the test feeds."""
        delivery = await self.live.get()
        if isinstance(delivery, Exception):
            raise delivery
        return delivery

    async def close(self) -> None:
        """Note the call."""
        self.faults.call("close_stream")


class FakeRemote:
    """A `Remote` whose answers a test gives, by method and path without query."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, JsonObject | None]] = []
        self.answers: dict[tuple[str, str], deque[Reply | Exception]] = {}

    def answer(self, method: str, path: str, *replies: Reply | Exception | JsonObject) -> None:
        """Plan the next answers; the last one is given for ever."""
        planned = self.answers.setdefault((method, path), deque())
        for each in replies:
            if isinstance(each, Reply | Exception):
                planned.append(each)
            else:
                planned.append(Reply(200, json.dumps(each).encode()))

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: JsonObject | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Give the next answer."""
        self.asked.append((method, path, body))
        planned = self.answers[method, path.partition("?")[0]]
        given = planned.popleft() if len(planned) > 1 else planned[0]
        if isinstance(given, Exception):
            raise given
        return given

    def times(self, method: str, path: str) -> int:
        """Count the requests made."""
        return sum((m, p.partition("?")[0]) == (method, path) for m, p, _ in self.asked)
