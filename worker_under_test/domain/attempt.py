"""The life cycle of an attempt, as a table (ATT-09)."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from worker_under_test.domain.errors import DomainError, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_under_test.domain.command import Command
    from worker_under_test.domain.progress import Checkpoint


class AttemptState(enum.StrEnum):
    """Where an attempt stands. The four last are terminal."""

    PENDING = "PENDING"
    """Accepted and saved; never started."""
    RUNNING = "RUNNING"
    """The capability has been, or was about to be, called."""
    RECOVERING = "RECOVERING"
    """Found at a restart; what is to be done was decided and saved, and not yet begun."""
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    UNKNOWN = "UNKNOWN"
    """What happened cannot be told from here; it needs reconciliation.

    That is what the attempt came to, and it stays so: a reconciliation is a fact of its own that
    settles the command, and a late answer is evidence (UNK-05..UNK-07)."""


_S = AttemptState

TRANSITIONS: Mapping[AttemptState, tuple[AttemptState, ...]] = MappingProxyType(
    {
        # FAILED without RUNNING: its capability is not installed, so it is never called.
        _S.PENDING: (_S.RUNNING, _S.FAILED, _S.CANCELLED),
        _S.RUNNING: (_S.RECOVERING, _S.SUCCEEDED, _S.FAILED, _S.CANCELLED, _S.UNKNOWN),
        # A restart in the middle of a recovery finds the attempt here and decides again.
        _S.RECOVERING: (_S.RECOVERING, _S.RUNNING, _S.FAILED, _S.CANCELLED, _S.UNKNOWN),
        _S.SUCCEEDED: (),
        _S.FAILED: (),
        _S.CANCELLED: (),
        _S.UNKNOWN: (),
    }
)
"""Each state and the states that may follow it."""

UNFINISHED: tuple[AttemptState, ...] = tuple(state for state, after in TRANSITIONS.items() if after)
"""The states that a recovery scan looks for."""


def require_transition(old: AttemptState, new: AttemptState) -> None:
    """Refuse a step that the table does not have.

    Args:
        old: The state as it is saved.
        new: The state that is to be saved.

    Raises:
        DomainError: Of kind conflict, if the step is not in `TRANSITIONS`.
    """
    if new not in TRANSITIONS[old]:
        raise DomainError(Kind.CONFLICT, f"an attempt cannot go from {old} to {new}")


@dataclass(frozen=True, slots=True)
class Attempt:
    """The one execution of a command (INV-2).

    Attributes:
        attempt_id: Its identity, made once and saved.
        command: The command it executes.
    """

    attempt_id: str
    command: Command


@dataclass(frozen=True, slots=True)
class UnfinishedAttempt:
    """An attempt as a restart finds it.

    Attributes:
        attempt: The attempt.
        state: Its saved state.
        checkpoint: Its last checkpoint, if it has one.
        cancelled: A cancel of its command is saved.
    """

    attempt: Attempt
    state: AttemptState
    checkpoint: Checkpoint | None
    cancelled: bool = False
