"""Orders: commands to the worker itself, told by their capability name (``control.``).

An order is a command like any other: it comes over the stream, is saved in the inbox, confirmed,
and answered with an event. What it changes is saved in the transaction of its inbox row.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from worker_under_test.domain.errors import DomainError, Kind

if TYPE_CHECKING:
    from worker_under_test.domain.command import Command
    from worker_under_test.domain.json_value import JsonObject

CONTROL_PREFIX = "control."
"""Begins the capability names that are the worker's own."""

CLEAN_UP = "control.cleanup"
"""Work of the worker's own: accepted and executed like a capability, and repeatable."""

MAX_CAPACITY = 1 << 20


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop a command, or see that it never starts (ADM-07).

    Attributes:
        target: The command to be cancelled.
    """

    target: str


@dataclass(frozen=True, slots=True)
class Drain:
    """Stop admitting commands, until told otherwise (DRN-06).

    Attributes:
        draining: False ends it.
    """

    draining: bool


@dataclass(frozen=True, slots=True)
class Limit:
    """Change how many attempts may be open at once (DRN-08).

    Attributes:
        attempts: The most from now on; 0 admits none.
    """

    attempts: int


@dataclass(frozen=True, slots=True)
class Offer:
    """Offer a capability, or admit no more commands for it (DRN-09).

    Attributes:
        capability: Its name.
        version: Its version.
        offered: False withdraws it; attempts at it that were accepted go on.
    """

    capability: str
    version: int
    offered: bool


class Answer(enum.StrEnum):
    """What a person found out about a command whose outcome was unknown (UNK-06)."""

    CONFIRMED_DONE = "confirmed_done"
    CONFIRMED_NOT_DONE = "confirmed_not_done"
    ABANDON = "abandon"


@dataclass(frozen=True, slots=True)
class Reconcile:
    """Settle a command whose outcome is unknown (UNK-06).

    Attributes:
        target: The command.
        answer: What was found out.
    """

    target: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class LateAnswer:
    """Keep what the outside said after all; it is evidence and changes no result (UNK-07).

    Attributes:
        target: The command that it is about.
        said: What was said.
    """

    target: str
    said: JsonObject


Order: TypeAlias = Cancel | Drain | Limit | Offer | Reconcile | LateAnswer
"""What the worker can be ordered."""


@dataclass(frozen=True, slots=True)
class Directives:
    """What the orders so far add up to; saved, and restored at a start (DRN-01).

    Attributes:
        draining: No command is admitted.
        limit: Most attempts open at once, or None if none was ordered.
        withdrawn: Capabilities, by name and version, for which no command is admitted.
    """

    draining: bool = False
    limit: int | None = None
    withdrawn: frozenset[tuple[str, int]] = frozenset()

    def after(self, order: Order) -> Directives:
        """Return the directives once an order is obeyed.

        Args:
            order: The order; one about a single command changes none of them.
        """
        match order:
            case Drain(draining):
                return replace(self, draining=draining)
            case Limit(attempts):
                return replace(self, limit=attempts)
            case Offer(capability, version, offered):
                key = {(capability, version)}
                withdrawn = self.withdrawn - key if offered else self.withdrawn | key
                return replace(self, withdrawn=withdrawn)
            case Cancel() | Reconcile() | LateAnswer():
                return self


def order_of(command: Command) -> Order | None:
    """Read the order in a command.

    Args:
        command: A well-formed command.

    Returns:
        The order, or None if the command is work.

    Raises:
        DomainError: Of kind invalid, if it is meant for the worker itself and is not an order.
    """
    name = command.capability
    if not name.startswith(CONTROL_PREFIX):
        return None
    if command.version != 1:
        raise _malformed(f"{name} has version 1 only")
    match name.removeprefix(CONTROL_PREFIX):
        case "drain":
            return Drain(draining=True)
        case "undrain":
            return Drain(draining=False)
        case "capacity":
            return Limit(_count(command, "attempts", least=0))
        case "offer" | "withdraw" as verb:
            version = _count(command, "version", least=1)
            return Offer(_text(command, "capability"), version, offered=verb == "offer")
        case "cleanup":
            return None
        case "cancel" | "reconcile" | "evidence" as verb:
            return _about_one(command, verb)
    raise _malformed(f"there is no order {name!r}")


def _about_one(command: Command, verb: str) -> Order:
    """Read an order about a single command."""
    target = _text(command, "command_id")
    if verb == "cancel":
        return Cancel(target)
    if verb == "reconcile":
        return Reconcile(target, _answer(command))
    said = command.payload.get("said")
    if not isinstance(said, dict):
        raise _malformed(f"{command.capability} needs said, an object")
    return LateAnswer(target, said)


def is_control(command: Command) -> bool:
    """Tell whether a command is for the worker itself; those are admitted full or draining."""
    return command.capability.startswith(CONTROL_PREFIX)


def _text(command: Command, key: str) -> str:
    value = command.payload.get(key)
    if not isinstance(value, str) or not value.strip():
        raise _malformed(f"{command.capability} needs {key}, a text")
    return value


def _answer(command: Command) -> Answer:
    try:
        return Answer(_text(command, "answer"))
    except ValueError:
        raise _malformed(f"answer is not one of {', '.join(Answer)}") from None


def _count(command: Command, key: str, *, least: int) -> int:
    value = command.payload.get(key)
    if type(value) is not int or not least <= value <= MAX_CAPACITY:
        raise _malformed(f"{command.capability} needs {key}, an integer from {least}")
    return value


def _malformed(why: str) -> DomainError:
    return DomainError(Kind.INVALID, f"malformed order: {why}")
