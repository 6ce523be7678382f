"""Workloads: commands, how they are delivered, and the faults on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from harness.model.canonical_json import JsonObject

Exchange = Literal["register", "ack", "event", "heartbeat", "refusal"]
"""A request that a worker makes of the coordinator."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Attributes:
        command_id: Identity; the same id is the same action, however often it is delivered.
        body: What to do, as the worker understands it.
    """

    command_id: str
    body: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplyLost:
    """A reply that is lost: the coordinator acts, and cuts the connection instead of replying.

    Attributes:
        exchange: Which kind of request.
        key: Which one: the command id of an ack, an event, a heartbeat or a refusal; the instance
            id of a registration.
        nth: Which of the requests with this key, counted from 1 over the whole experiment.
    """

    exchange: Exchange
    key: str
    nth: int = 1


@dataclass(frozen=True, slots=True)
class Workload:
    """The commands of one experiment.

    Attributes:
        commands: Offered before the worker starts, in this order.
        fresh: Offered after recovery, to see that work still goes through.
        twice: Ids of commands that are delivered twice in a row on each delivery.
        lost: Replies that are lost.
    """

    commands: tuple[Command, ...]
    fresh: Command
    twice: frozenset[str] = frozenset()
    lost: tuple[ReplyLost, ...] = ()
