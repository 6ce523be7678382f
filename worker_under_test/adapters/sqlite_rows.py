"""Rows of the local database turned into domain values, and checkpoints into their text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_under_test.domain.attempt import Attempt, AttemptState, UnfinishedAttempt
from worker_under_test.domain.command import Command
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.event import Event, EventKind
from worker_under_test.domain.json_value import JsonValue, canonical, parse_object
from worker_under_test.domain.progress import Checkpoint

if TYPE_CHECKING:
    import sqlite3


def checkpoint_text(checkpoint: Checkpoint) -> str:
    """Write what a checkpoint holds besides its number.

    Args:
        checkpoint: The checkpoint.

    Returns:
        Canonical JSON.
    """
    return canonical({"progress": dict(checkpoint.progress), "evidence": dict(checkpoint.evidence)})


def checkpoint_from(seq: int, data: str) -> Checkpoint:
    """Read a checkpoint.

    Args:
        seq: Its number.
        data: Text made by `checkpoint_text`.

    Returns:
        The checkpoint. If the text cannot be read, one without evidence: a checkpoint is a hint,
        and without it a capability looks at the outside alone (REC-16).
    """
    try:
        parts = parse_object(data)
    except ValueError:
        parts = {}
    return Checkpoint(seq, _object(parts.get("progress")), _object(parts.get("evidence")))


def unfinished_from(row: sqlite3.Row) -> UnfinishedAttempt:
    """Read an attempt with its command and its last checkpoint.

    Args:
        row: attempt id, state, command id, capability, version, payload, seq, data, cancelled.

    Returns:
        The attempt as it is saved.

    Raises:
        DomainError: Of kind internal, if the command's payload cannot be read.
    """
    attempt_id, state, command_id, capability, version, payload, seq, data, cancelled = row
    command = Command(command_id, capability, version, _saved(payload))
    return UnfinishedAttempt(
        Attempt(attempt_id, command),
        AttemptState(state),
        None if seq is None else checkpoint_from(seq, data),
        cancelled=bool(cancelled),
    )


def event_from(row: sqlite3.Row) -> Event:
    """Read an event.

    Args:
        row: event id, command id, attempt id, kind, body.

    Returns:
        The event as it was saved.

    Raises:
        DomainError: Of kind internal, if its body cannot be read.
    """
    event_id, command_id, attempt_id, kind, body = row
    return Event(event_id, command_id, attempt_id, EventKind(kind), _saved(body))


def _saved(text: str) -> dict[str, JsonValue]:
    try:
        return parse_object(text)
    except ValueError as error:
        raise DomainError(Kind.INTERNAL, "the local store holds text that is not JSON") from error


def _object(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}
