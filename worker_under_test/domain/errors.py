"""Errors by kind, and the one question the sender asks of them: is a retry right?"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Kind(enum.StrEnum):
    """What sort of refusal an error is."""

    INVALID = "invalid"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    INTERNAL = "internal"


class DomainError(Exception):
    """An error with a kind.

    Args:
        kind: What sort of refusal it is.
        message: Text for the reader; the cause, if any, is chained with ``from``.
    """

    def __init__(self, kind: Kind, message: str) -> None:
        self.kind = kind
        self.message = message
        super().__init__(message)


class DeliveryError(Exception):
    """Marks the error in its ``__cause__`` as a failed delivery to a remote side.

    Only the adapter of the remote call raises it; a local failure never carries the mark, so it
    can never be taken for a network failure (DEL-02, DEL-07).
    """


class LocalFailureError(Exception):
    """Marks the error in its ``__cause__`` as a failure of the worker's own store.

    A capability that keeps facts of its own there raises it. No result is made of it: the attempt
    stays as it is saved, and the next start recovers it.
    """


def _chain(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__


def kind_of(error: BaseException) -> Kind | None:
    """Find the kind of an error through its wrapping.

    Args:
        error: The error; explicit causes are followed.

    Returns:
        The outermost kind in the chain, or None if there is none.
    """
    return next((link.kind for link in _chain(error) if isinstance(link, DomainError)), None)


def is_delivery(error: BaseException) -> bool:
    """Tell whether an error is wholly a failed delivery.

    Args:
        error: The error; explicit causes are followed, and a group counts only if each of its
            members is a failed delivery (DEL-08).

    Returns:
        True if the mark is in the chain.
    """
    for link in _chain(error):
        if isinstance(link, BaseExceptionGroup):
            return all(is_delivery(member) for member in link.exceptions)
        if isinstance(link, DeliveryError):
            return True
    return False


def retryable_delivery(error: BaseException | None) -> bool:
    """Tell whether the sender may wait and try again (DEL-01..DEL-10).

    Args:
        error: The error of a flush, or None.

    Returns:
        True if the error is a failed delivery and is neither unauthenticated nor forbidden. A
        group is retryable only if each of its members is.
    """
    if error is None:
        return False
    for link in _chain(error):
        if isinstance(link, BaseExceptionGroup):
            return all(retryable_delivery(member) for member in link.exceptions)
    return is_delivery(error) and kind_of(error) not in (Kind.UNAUTHENTICATED, Kind.FORBIDDEN)
