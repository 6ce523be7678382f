"""A receiver of notifications: an effect that nobody can ask about afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from harness.model.canonical_json import digest
from harness.world.http_errors import Refused, error_reply, json_reply
from harness.world.http_fields import read_fields
from harness.world.services.logged_service import LoggedService
from harness.world.services.request_log import RequestLog, read_requests

if TYPE_CHECKING:
    from pathlib import Path

    from aiohttp import web

    from harness.world.services.request_log import LoggedRequest
    from harness.world.wire_faults import Fault

FILE_NAME: Final = "notifications.db"
"""Name of the log in the world's directory."""

_HEADER: Final = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification that had its effect.

    Attributes:
        position: Place in the receiver's log, from 1.
        number: Its number among the effects, from 1.
        channel: To whom.
        text: What.
        key: The idempotency key that came with it, or nothing.
    """

    position: int
    number: int
    channel: str
    text: str
    key: str

    @property
    def effect_key(self) -> str:
        """Its key in the effect ledger: the idempotency key, or else a digest of the content."""
        return self.key or digest({"channel": self.channel, "text": self.text})


class _Books:
    """The notifications, as they follow from the log."""

    def __init__(self) -> None:
        self.notifications: list[Notification] = []
        self.by_key: dict[str, Notification] = {}

    def enter(self, logged: LoggedRequest) -> None:
        if logged.outcome != "accepted":
            return
        text, key = (cast("str", logged.body[name]) for name in ("text", "key"))
        number = len(self.notifications) + 1
        notification = Notification(logged.position, number, logged.key, text, key)
        self.notifications.append(notification)
        if key:
            self.by_key.setdefault(key, notification)


def read_notifications(world_dir: Path) -> tuple[Notification, ...]:
    """Read which notifications had their effect at a receiver, in their order.

    Args:
        world_dir: A workspace's ``world/``, or a copy of it.

    Raises:
        HarnessError: There was no receiver, or its log cannot be read.
    """
    books = _Books()
    for logged in read_requests(world_dir / FILE_NAME):
        books.enter(logged)
    return tuple(books.notifications)


class Receiver(LoggedService):
    """The service ``/notifications`` that `docs/world.md` describes; one instance, one experiment.

    Args:
        honours_keys: Whether a known idempotency key has no second effect.
        faults: Its faults; the request is ``notify``, its key the channel.

    Raises:
        UsageError: The faults contradict themselves.
    """

    def __init__(self, *, honours_keys: bool, faults: tuple[Fault, ...] = ()) -> None:
        self._honours_keys = honours_keys
        self._books = _Books()
        super().__init__(RequestLog(FILE_NAME, ("notify",), faults, self._books.enter))

    def add_routes(self, routes: web.UrlDispatcher) -> None:
        """Add the routes.

        Args:
            routes: Where they go.
        """
        routes.add_get("/notifications/capabilities", self._capabilities, allow_head=False)
        routes.add_post("/notifications", self._notify)

    async def _capabilities(self, _request: web.Request) -> web.Response:
        return json_reply({"honours_keys": self._honours_keys})

    async def _notify(self, request: web.Request) -> web.Response:
        fields = await read_fields(request)
        channel, text = fields.text("channel"), fields.text("text")
        key = _key(request)
        async with self.log.turn("notify", channel) as turn:
            known = self._books.by_key.get(key) if self._honours_keys else None
            body = {"text": text, "key": key}
            if known is None:
                await turn.keep("accepted", body)
                notification = self._books.notifications[-1]
                self.ledger.record(
                    "notification", notification.effect_key, str(notification.number)
                )
                reply = json_reply({}, 202)
            elif (known.channel, known.text) == (channel, text):
                await turn.keep("repeated", body)
                reply = json_reply({}, 202)
            else:
                await turn.keep("conflicting", body)
                reply = error_reply("conflict", f"key {key!r} is known with another notification")
        return reply


def _key(request: web.Request) -> str:
    """Return the idempotency key of a request, or nothing if it has none."""
    given = request.headers.getall(_HEADER, [])
    if not given:
        return ""
    key = given[0]
    if len(given) > 1 or not key or not key.isascii() or not key.isprintable():
        raise Refused("invalid", f"header {_HEADER!r} is not one text of printable ASCII")
    return key
