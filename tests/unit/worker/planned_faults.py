"""Failures on order, for the doubles of the worker's ports."""

from __future__ import annotations

from collections import deque

from worker_under_test.domain.errors import DeliveryError, DomainError, Kind


def refused(kind: Kind) -> DeliveryError:
    """Return a delivery that the coordinator refused."""
    error = DeliveryError("refused")
    error.__cause__ = DomainError(kind, "refused")
    return error


def network_failure() -> DeliveryError:
    """Return a delivery that failed on the wire."""
    error = DeliveryError("lost")
    error.__cause__ = ConnectionResetError("reset")
    return error


class Faults:
    """Errors that the next calls of a method raise, in order; None lets a call pass."""

    def __init__(self, log: list[str]) -> None:
        self.log = log
        self.planned: dict[str, deque[Exception | None]] = {}

    def plan(self, method: str, *errors: Exception | None) -> None:
        """Plan what the next calls of a method raise."""
        self.planned.setdefault(method, deque()).extend(errors)

    def call(self, method: str, about: str = "") -> None:
        """Note a call, and raise what is planned for it."""
        self.log.append(f"{method} {about}".strip())
        queue = self.planned.get(method)
        error = queue.popleft() if queue else None
        if error is not None:
            raise error
