"""Faults on the wire: at which request of a service, before or after it acted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from harness.model.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FaultKind = Literal["refused", "reply_lost"]
"""``refused``: answered 503 before it acted. ``reply_lost``: it acted, and the connection is cut
instead of the reply."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault at one request.

    Attributes:
        kind: What happens.
        request: Which kind of request, as the service names it.
        key: Which one, as the service says for each kind.
        nth: Which of the requests of this kind with this key, counted from 1 over the whole
            experiment; what was refused by a fault counts too.
    """

    kind: FaultKind
    request: str
    key: str
    nth: int = 1


class FaultPlan:
    """The faults of one service.

    Args:
        faults: Any number; at most one for a request.
        requests: The kinds of requests that the service knows.

    Raises:
        UsageError: A kind is not known, a request is counted from less than 1, or two faults are
            at the same request.
    """

    def __init__(self, faults: Iterable[Fault], requests: Sequence[str]) -> None:
        self._faults: dict[tuple[str, str, int], FaultKind] = {}
        for fault in faults:
            if fault.kind not in get_args(FaultKind):
                raise UnknownNameError("kind of fault", fault.kind, get_args(FaultKind))
            if fault.request not in requests:
                raise UnknownNameError("request of a fault", fault.request, requests)
            if fault.nth < 1:
                raise UsageError(f"{fault}: requests are counted from 1")
            where = fault.request, fault.key, fault.nth
            if where in self._faults:
                raise UsageError(f"{fault}: another fault is at this request")
            self._faults[where] = fault.kind

    def at(self, request: str, key: str, nth: int) -> FaultKind | None:
        """Return the fault at a request, if there is one.

        Args:
            request: Its kind.
            key: Which one.
            nth: Its number among those.
        """
        return self._faults.get((request, key, nth))
