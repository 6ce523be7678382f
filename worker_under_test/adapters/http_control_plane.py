"""The coordinator's requests over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import aiohttp

from worker_under_test.adapters.http_errors import remote_call, require_status
from worker_under_test.adapters.http_link import REQUEST_TIMEOUT_S
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.json_value import JsonValue, parse_object
from worker_under_test.domain.registration import Session

if TYPE_CHECKING:
    from worker_under_test.adapters.http_link import HttpLink
    from worker_under_test.domain.attempt import Attempt
    from worker_under_test.domain.event import Event
    from worker_under_test.domain.progress import Progress
    from worker_under_test.domain.registration import Registration


class HttpControlPlane:
    """A `ControlPlane` over HTTP.

    Args:
        link: The connection pool; closed with this adapter.
    """

    def __init__(self, link: HttpLink) -> None:
        self._link = link

    async def register(self, registration: Registration) -> Session:
        """Open a session (SES-01)."""
        body: dict[str, JsonValue] = {
            "instance_id": registration.instance_id,
            "name": registration.name,
            "node_id": registration.node_id,
            "inventory": registration.inventory.to_json(),
        }
        text = await self._post("/sessions", body, 201)
        with remote_call("POST /sessions"):
            return _session(text)

    async def acknowledge(self, session: Session, command_id: str) -> None:
        """Confirm that a command is saved (INB-01)."""
        body: dict[str, JsonValue] = {"session_id": session.session_id}
        await self._post(f"/commands/{quote(command_id, safe='')}/ack", body, 204)

    async def refuse(self, session: Session, command_id: str, reason: str) -> None:
        """Tell that a command is not accepted (AMB-20)."""
        body: dict[str, JsonValue] = {"session_id": session.session_id, "reason": reason}
        await self._post(f"/commands/{quote(command_id, safe='')}/refusal", body, 204)

    async def send_event(self, session: Session, event: Event) -> None:
        """Deliver an event; 200 says that the server had it already (ATT-05)."""
        body: dict[str, JsonValue] = {
            "session_id": session.session_id,
            "event_id": event.event_id,
            "command_id": event.command_id,
            "attempt_id": event.attempt_id,
            "kind": event.kind.value,
            "body": dict(event.body),
        }
        await self._post("/events", body, 200, 201)

    async def heartbeat(self, session: Session, attempt: Attempt, progress: Progress) -> None:
        """Tell that an attempt lives (SES-05)."""
        body: dict[str, JsonValue] = {
            "session_id": session.session_id,
            "command_id": attempt.command.command_id,
            "progress": progress.to_json(),
        }
        await self._post(f"/attempts/{quote(attempt.attempt_id, safe='')}/heartbeat", body, 204)

    async def close(self) -> None:
        """Close the connection pool."""
        await self._link.close()

    async def _post(self, path: str, body: dict[str, JsonValue], *wanted: int) -> str:
        timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
        with remote_call(f"POST {path}"):
            async with self._link.session.post(
                self._link.url(path), json=body, timeout=timeout
            ) as response:
                await require_status(response, *wanted)
                return await response.text(errors="replace")


def _session(text: str) -> Session:
    try:
        session_id = parse_object(text).get("session_id")
    except ValueError as error:
        raise DomainError(Kind.INTERNAL, "the reply is not a JSON object") from error
    if not isinstance(session_id, str) or not session_id:
        raise DomainError(Kind.INTERNAL, "the reply names no session")
    return Session(session_id)
