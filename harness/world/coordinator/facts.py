"""The coordinator's facts, as oracles read them from its database."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from harness.model.errors import HarnessError
from harness.world.coordinator.marker_file import elsewhere
from harness.world.coordinator.schema import FILE_NAME, select
from harness.world.sqlite import reading

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from harness.model.canonical_json import JsonObject

ENDING_KINDS = frozenset({"succeeded", "failed", "cancelled", "unknown"})
"""Kinds of events that end their command."""

Outcome = Literal["accepted", "repeated", "conflicting"]
"""What became of an event that was received: new, known with this content, or with another."""


@dataclass(frozen=True, slots=True)
class OfferedCommand:
    """A command that the coordinator was given for the worker.

    Attributes:
        position: Place among all facts of the coordinator, from 1.
        command_id: Identity of the command.
        body: What to do.
    """

    position: int
    command_id: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class Session:
    """A registration.

    Attributes:
        position: Place among all facts of the coordinator, from 1.
        session_id: ``session-N``, numbered in the order of registration.
        instance_id: Who registered.
        name: The worker's name.
        node_id: Where it runs, as it says.
        inventory: What it says that it has.
    """

    position: int
    session_id: str
    instance_id: str
    name: str
    node_id: str
    inventory: JsonObject


@dataclass(frozen=True, slots=True)
class Delivery:
    """A command that was sent on a stream.

    Attributes:
        position: Place among all facts of the coordinator, from 1.
        number: Id of the message on the stream, from 1 over the whole experiment.
        command_id: Which command.
        session_id: To whom.
    """

    position: int
    number: int
    command_id: str
    session_id: str


@dataclass(frozen=True, slots=True)
class Ack:
    """An acknowledgement.

    Attributes:
        position: Place among all facts of the coordinator, from 1.
        command_id: Which command.
        session_id: By whom.
        repeated: Whether the command was acknowledged before.
    """

    position: int
    command_id: str
    session_id: str
    repeated: bool


@dataclass(frozen=True, slots=True)
class Event:
    """An event as it was received.

    Attributes:
        position: Place among all facts of the coordinator, from 1.
        event_id: Identity; the same id is the same event.
        session_id: Who sent it; not part of its content.
        command_id: Which command it is about.
        attempt_id: Which attempt at the command.
        kind: What happened; one of `ENDING_KINDS` ends the command.
        body: The rest.
    """

    position: int
    event_id: str
    session_id: str
    command_id: str
    attempt_id: str
    kind: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class Receipt:
    """One receipt of an event; an event that is sent twice has two.

    Attributes:
        event: What was received, with the position of this receipt.
        outcome: What became of it.
    """

    event: Event
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A heartbeat of an attempt.

    Attributes:
        position: Place among all facts of the coordinator, from 1.
        attempt_id: Which attempt.
        command_id: At which command.
        session_id: Who sent it.
        progress: How far it is, as it says.
    """

    position: int
    attempt_id: str
    command_id: str
    session_id: str
    progress: JsonObject


@dataclass(frozen=True, slots=True)
class Refusal:
    """A command that a worker said it does not accept; it stays open.

    Attributes:
        position: Place among all facts of the coordinator, from 1.
        command_id: Which command.
        session_id: By whom.
        reason: Why, as it says.
    """

    position: int
    command_id: str
    session_id: str
    reason: str


Fact = OfferedCommand | Session | Delivery | Ack | Receipt | Heartbeat | Refusal
"""Something that happened."""


@dataclass(frozen=True, slots=True)
class CoordinatorFacts:
    """Everything that the coordinator saw, each kind in the order in which it happened.

    Attributes:
        commands: Commands that were offered.
        deliveries: Commands that were sent.
        acks: Acknowledgements, repeated ones too.
        sessions: Registrations.
        events: Accepted events, one for each event id.
        receipts: Receipts of events, repeated and conflicting ones too.
        heartbeats: Heartbeats of attempts.
        refusals: Commands that were refused, each time.
    """

    commands: tuple[OfferedCommand, ...] = ()
    deliveries: tuple[Delivery, ...] = ()
    acks: tuple[Ack, ...] = ()
    sessions: tuple[Session, ...] = ()
    events: tuple[Event, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    heartbeats: tuple[Heartbeat, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    def kinds(self) -> tuple[tuple[Fact, ...], ...]:
        """Return every fact once, those of one kind together. An event is in its receipt."""
        return (
            self.commands,
            self.sessions,
            self.deliveries,
            self.acks,
            self.receipts,
            self.heartbeats,
            self.refusals,
        )


def read_facts(world_dir: Path) -> CoordinatorFacts:
    """Read the coordinator's facts at one moment.

    The database may be open in another process, closed, or a copy with or without its log. What
    belongs to a copy is not changed by reading it. Facts that are in another database than SQLite
    are in the directory once the coordinator is closed, and in a snapshot of it.

    Args:
        world_dir: A workspace's ``world/``, or a copy of it.

    Returns:
        The facts, all of the same moment.

    Raises:
        HarnessError: There is no coordinator's database, it cannot be read, or the facts are not
            in the directory now.
    """
    path = world_dir / FILE_NAME
    if not path.is_file():
        raise HarnessError(f"there is no {FILE_NAME} in {world_dir}: no coordinator was open there")
    if where := elsewhere(path):
        raise HarnessError(
            f"the facts of {world_dir} are in {where}; they are in the directory once the"
            " coordinator is closed, and in snapshots"
        )
    with reading(path) as db:
        return _read(db)


def _read(db: sqlite3.Connection) -> CoordinatorFacts:
    receipts = tuple(
        Receipt(
            Event(position, event_id, session_id, command_id, attempt_id, kind, _object(body)),
            outcome,
        )
        for (
            position,
            outcome,
            event_id,
            session_id,
            command_id,
            attempt_id,
            kind,
            body,
        ) in db.execute(select("receipts"))
    )
    return CoordinatorFacts(
        commands=tuple(
            OfferedCommand(position, command_id, _object(body))
            for position, command_id, body in db.execute(select("worker_commands"))
        ),
        deliveries=tuple(Delivery(*row) for row in db.execute(select("deliveries"))),
        acks=tuple(
            Ack(position, command_id, session_id, bool(repeated))
            for position, command_id, session_id, repeated in db.execute(select("acks"))
        ),
        sessions=tuple(
            Session(position, session_id, instance_id, name, node_id, _object(inventory))
            for position, session_id, instance_id, name, node_id, inventory in db.execute(
                select("sessions")
            )
        ),
        events=tuple(receipt.event for receipt in receipts if receipt.outcome == "accepted"),
        receipts=receipts,
        heartbeats=tuple(
            Heartbeat(position, attempt_id, command_id, session_id, _object(progress))
            for position, attempt_id, command_id, session_id, progress in db.execute(
                select("heartbeats")
            )
        ),
        refusals=tuple(Refusal(*row) for row in db.execute(select("refusals"))),
    )


def _object(text: str) -> JsonObject:
    return cast("JsonObject", json.loads(text))
