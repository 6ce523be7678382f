"""The coordinator's state in memory: it decides, and touches neither disk nor network."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from harness.model.canonical_json import canonical
from harness.world.coordinator.facts import (
    ENDING_KINDS,
    Ack,
    Delivery,
    Event,
    Heartbeat,
    OfferedCommand,
    Receipt,
    Refusal,
    Session,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.model.workload import Exchange
    from harness.world.coordinator.facts import CoordinatorFacts, Fact


class CoordinatorState:
    """The state that follows from the facts so far.

    A change is made in three steps: ask the books for the fact that a request would be, commit it,
    and `enter` it. Nothing else may be entered in between; the coordinator holds a lock.

    Args:
        facts: What happened before.
    """

    def __init__(self, facts: CoordinatorFacts) -> None:
        self.commands: dict[str, OfferedCommand] = {}
        self.acknowledged: set[str] = set()
        self.ended: set[str] = set()
        self.sessions: dict[str, str] = {}
        """Who registered, by session id."""
        self._contents: dict[str, str] = {}
        self._latest: dict[str, int] = {}
        self._exchanges: Counter[tuple[Exchange, str]] = Counter()
        self._number = 0
        self.position = 0
        for kind in facts.kinds():
            self.enter(kind)

    def count(self, exchange: Exchange, key: str) -> int:
        """Return how many requests of a kind and key were entered.

        Args:
            exchange: Kind of the request.
            key: As `harness.model.workload.ReplyLost` has it.
        """
        return self._exchanges[exchange, key]

    def backlog(self, last_number: int | None) -> tuple[str, ...]:
        """Return the commands that a new stream begins with, oldest first.

        Args:
            last_number: The last delivery that the client has seen, or None if it does not say.

        Returns:
            Ids of the commands that are not acknowledged or were delivered after that.
        """
        return tuple(
            command_id
            for command_id in self.commands
            if command_id not in self.acknowledged
            or (last_number is not None and self._latest.get(command_id, 0) > last_number)
        )

    def deliveries(self, sends: Iterable[tuple[str, str]]) -> tuple[Delivery, ...]:
        """Number deliveries.

        Args:
            sends: Session id and command id of each, in the order of sending.
        """
        return tuple(
            Delivery(self.position + n, self._number + n, command_id, session_id)
            for n, (session_id, command_id) in enumerate(sends, start=1)
        )

    def receipt(self, event: Event) -> Receipt:
        """Compare an event with what is known under its id.

        Args:
            event: What was received.

        Returns:
            The receipt with its outcome.
        """
        known = self._contents.get(event.event_id)
        if known is None:
            return Receipt(event, "accepted")
        return Receipt(event, "repeated" if known == _content(event) else "conflicting")

    def enter(self, facts: Iterable[Fact]) -> None:
        """Enter facts that are committed.

        Args:
            facts: What happened, in its order.
        """
        for fact in facts:
            self._enter(fact)

    def _enter(self, fact: Fact) -> None:
        position = fact.event.position if isinstance(fact, Receipt) else fact.position
        self.position = max(self.position, position)
        match fact:
            case OfferedCommand():
                self.commands[fact.command_id] = fact
            case Session():
                self.sessions[fact.session_id] = fact.instance_id
                self._exchanges["register", fact.instance_id] += 1
            case Delivery():
                self._number = max(self._number, fact.number)
                self._latest[fact.command_id] = fact.number
            case Ack():
                self.acknowledged.add(fact.command_id)
                self._exchanges["ack", fact.command_id] += 1
            case Receipt(event=event, outcome=outcome):
                self._exchanges["event", event.command_id] += 1
                if outcome == "accepted":
                    self._contents[event.event_id] = _content(event)
                    if event.kind in ENDING_KINDS:
                        self.ended.add(event.command_id)
            case Refusal():
                self._exchanges["refusal", fact.command_id] += 1
            case Heartbeat():
                self._exchanges["heartbeat", fact.command_id] += 1


def _content(event: Event) -> str:
    # Not the session: after a restart the same event comes from another one.
    return canonical([event.command_id, event.attempt_id, event.kind, event.body])
