"""The services outside that capabilities use, as far as HTTP goes.

One port for all of them: what a request means, and what a reply proves, is the capability's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.json_value import JsonValue, canonical, parse_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_under_test.domain.json_value import JsonObject


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back.

    Attributes:
        status: The status.
        body: What arrived of the body.
        headers: Names in lower case.
        whole: Whether all of the body arrived; a connection may be cut at any byte.
    """

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    whole: bool = True

    def to_json(self) -> dict[str, JsonValue]:
        """Read the body as a JSON object.

        Raises:
            DomainError: Of kind internal, if it is not a whole one, or holds what cannot be written
                again: what it says could be saved nowhere.
        """
        if not self.whole:
            raise DomainError(Kind.INTERNAL, "the reply was cut")
        try:
            read = parse_object(self.body.decode())
            canonical(read)
        except ValueError as error:
            raise DomainError(Kind.INTERNAL, "the reply is not a JSON object") from error
        return read


class Remote(Protocol):
    """Requests to services outside."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: JsonObject | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Make a request, and take whatever status comes.

        Args:
            method: The method.
            path: Path and query, quoted, starting with a slash.
            body: Sent as JSON, if given.
            headers: Sent as they are.

        Returns:
            The reply.

        Raises:
            DeliveryError: No reply came: the service may or may not have done it.
        """
