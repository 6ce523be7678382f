"""The result of an attempt, as the capability returns it and as it is saved and sent."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from worker_under_test.domain.attempt import AttemptState
from worker_under_test.domain.json_value import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_under_test.domain.artifact import Artifact
    from worker_under_test.domain.json_value import JsonObject


class EventKind(enum.StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


FINAL_STATE: Mapping[EventKind, AttemptState] = MappingProxyType(
    {
        EventKind.SUCCEEDED: AttemptState.SUCCEEDED,
        EventKind.FAILED: AttemptState.FAILED,
        EventKind.CANCELLED: AttemptState.CANCELLED,
        EventKind.UNKNOWN: AttemptState.UNKNOWN,
    }
)
"""The state in which each kind of event leaves its attempt."""


@dataclass(frozen=True, slots=True)
class AttemptEvent:
    """What a capability returns.

    Attributes:
        kind: How the attempt ended.
        body: The result, or the reason of a failure.
        artifacts: The files that were published; saved in the transaction of the result.

    Raises:
        ValueError: The body cannot be written as JSON; found here, it is the capability's failure
            and not the store's.
    """

    kind: EventKind
    body: JsonObject
    artifacts: tuple[Artifact, ...] = ()

    def __post_init__(self) -> None:
        canonical(self.body)


@dataclass(frozen=True, slots=True)
class Event:
    """A saved event: immutable, with an identity that was made once (ATT-06, OUT-37).

    Attributes:
        event_id: Its identity; the server tells repeats by it.
        command_id: The command it ends.
        attempt_id: The attempt it reports.
        kind: How the attempt ended.
        body: The result, or the reason of a failure.
    """

    event_id: str
    command_id: str
    attempt_id: str
    kind: EventKind
    body: JsonObject
