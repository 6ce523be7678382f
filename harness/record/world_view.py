"""The world's view of an experiment: coordinator's facts and ledger's effects, per incarnation."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.model.errors import HarnessError
from harness.world.coordinator.facts import (
    ENDING_KINDS,
    Ack,
    CoordinatorFacts,
    Delivery,
    Fact,
    Heartbeat,
    OfferedCommand,
    Receipt,
    Refusal,
    Session,
    read_facts,
)
from harness.world.ledger import Effect, EffectLedger

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.workload import Command, Workload
    from harness.record.failure_schema import CommandRow, EffectRow

_BODY_CHARS = 400


@dataclass(frozen=True, slots=True)
class Observed:
    """What the world had seen when an image was taken.

    Attributes:
        facts: Facts of the coordinator, in the order in which they happened.
        effects: Effects of the ledger, in the order of recording.
        books: The coordinator's facts by kind, or None without a coordinator.
    """

    facts: tuple[Fact, ...] = ()
    effects: tuple[Effect, ...] = ()
    books: CoordinatorFacts | None = None


def observe(world_dir: Path) -> Observed:
    """Read what a world saw; what is not there or cannot be read was not observed."""
    try:
        books = read_facts(world_dir)
    except HarnessError:
        books = None
    facts = [fact for kind in (books.kinds() if books else ()) for fact in kind]
    try:
        effects = EffectLedger(world_dir).effects()
    except (OSError, ValueError, TypeError):
        effects = ()
    return Observed(tuple(sorted(facts, key=_position)), effects, books)


def _position(fact: Fact) -> int:
    return fact.event.position if isinstance(fact, Receipt) else fact.position


def describe_fact(fact: Fact) -> str:
    """Say a fact in a few words."""
    match fact:
        case OfferedCommand():
            return f"command {fact.command_id} offered"
        case Session():
            return f"{fact.instance_id} registered as {fact.session_id}"
        case Delivery():
            return f"command {fact.command_id} delivered to {fact.session_id}"
        case Ack():
            again = " again" if fact.repeated else ""
            return f"command {fact.command_id} acknowledged{again} by {fact.session_id}"
        case Receipt():
            event = fact.event
            return (
                f"event {event.event_id} received: {event.command_id} {event.kind} ({fact.outcome})"
            )
        case Heartbeat():
            return f"heartbeat of {fact.attempt_id} at {fact.command_id}"
        case Refusal():
            return f"command {fact.command_id} refused by {fact.session_id}: {fact.reason}"


def commands(workload: Workload, observed: list[Observed]) -> list[CommandRow]:
    """Say of each command what was promised and what came of it.

    Args:
        workload: What was asked.
        observed: What the world had seen after each incarnation.
    """
    every = [(command, False) for command in workload.commands] + [(workload.fresh, True)]
    return [_command(command, observed, fresh=fresh) for command, fresh in every]


def _command(command: Command, observed: list[Observed], *, fresh: bool) -> CommandRow:
    name = command.command_id
    books = (observed[-1].books if observed else None) or CoordinatorFacts()
    accepted_in = 0
    for number, then in enumerate(observed, start=1):
        if then.books and any(ack.command_id == name for ack in then.books.acks):
            accepted_in = number
            break
    kinds = [event.kind for event in books.events if event.command_id == name]
    body = json.dumps(command.body, ensure_ascii=False, sort_keys=True, default=str)
    return {
        "command_id": name,
        "body": body if len(body) <= _BODY_CHARS else f"{body[:_BODY_CHARS]}…",
        "fresh": fresh,
        "delivered": sum(delivery.command_id == name for delivery in books.deliveries),
        "acknowledged": sum(ack.command_id == name for ack in books.acks),
        "accepted_in": accepted_in,
        "reported": kinds,
        "ended": next((kind for kind in kinds if kind in ENDING_KINDS), ""),
    }


def effects(observed: Observed) -> list[EffectRow]:
    """Count the effects of the ledger, in the order of their first."""
    times = Counter((effect.kind, effect.key) for effect in observed.effects)
    by: dict[tuple[str, str], list[str]] = {}
    for effect in observed.effects:
        by.setdefault((effect.kind, effect.key), []).append(effect.token)
    return [
        {
            "kind": kind,
            "key": key,
            "times": count,
            "by": [token for token in by[kind, key] if token],
        }
        for (kind, key), count in times.items()
    ]
