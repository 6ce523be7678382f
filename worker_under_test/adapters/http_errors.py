"""Turns every failure of a remote call into a marked delivery error (DEL-07)."""

from __future__ import annotations

from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

import aiohttp

from worker_under_test.domain.errors import DeliveryError, DomainError, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

_KIND_OF_STATUS = MappingProxyType(
    {
        400: Kind.INVALID,
        401: Kind.UNAUTHENTICATED,
        403: Kind.FORBIDDEN,
        404: Kind.NOT_FOUND,
        409: Kind.CONFLICT,
    }
)

_SHOWN_CHARS = 300


@contextmanager
def remote_call(what: str) -> Iterator[None]:
    """Mark what fails inside as a failed delivery.

    Only the request itself and the reading of its reply belong inside.

    Args:
        what: The request, for the message.

    Raises:
        DeliveryError: The network failed, time ran out, or the coordinator refused; the cause
            says which.
    """
    try:
        yield
    except (aiohttp.ClientError, OSError, TimeoutError, DomainError) as error:
        raise DeliveryError(f"{what}: {type(error).__name__}: {error}") from error


async def require_status(response: aiohttp.ClientResponse, *wanted: int) -> None:
    """Refuse any other status.

    Args:
        response: The reply.
        *wanted: The statuses that mean success.

    Raises:
        DomainError: Of the kind that the status stands for; kind internal for any other status.
    """
    if response.status not in wanted:
        text = (await response.text(errors="replace"))[:_SHOWN_CHARS]
        kind = _KIND_OF_STATUS.get(response.status, Kind.INTERNAL)
        raise DomainError(kind, f"status {response.status}: {text}")
