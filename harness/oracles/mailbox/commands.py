"""Commands: what was accepted ends, and new work goes through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.model.oracle import Finding, broken_if
from harness.world.coordinator.facts import ENDING_KINDS, read_facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.oracle import Evidence
    from harness.oracles.mailbox.worker_state import StateReader
    from harness.world.coordinator.facts import CoordinatorFacts


@dataclass(frozen=True, slots=True)
class CommandsEnd:
    """Every accepted command ends (INV-1).

    A command that the coordinator saw acknowledged was accepted. One that was still in flight at a
    strike may not have been; but it is delivered again after the restart, so a quiet worker has
    accepted it by then.
    """

    name: str = "commands-end"
    promise: str = "every accepted command reaches a reported end; none vanishes"
    remedy: str = (
        "Acknowledge a command only when it is saved, and report its end until the other side "
        "confirms it."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Look for the end of every command of the workload when the worker was quiet."""
        facts = evidence.settled.read(read_facts, evidence.settled.world_dir)
        wanted = [command.command_id for command in evidence.workload.commands]
        return broken_if(_open_commands(facts, wanted))


@dataclass(frozen=True, slots=True)
class FreshGoesThrough:
    """After recovery the worker makes progress: a fresh command goes through.

    Attributes:
        read_books: Reader of the worker's books, to see a new checkpoint.
    """

    read_books: StateReader
    name: str = "fresh-command-goes-through"
    promise: str = "after recovery a fresh command is accepted, checkpointed and ends"
    remedy: str = (
        "Let recovery give back everything it took: locks, slots, connections, and whatever "
        "the next command waits for."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Look for the end and the checkpoint of the fresh command at the very end."""
        if not evidence.fresh_offered:
            return broken_if(())
        fresh = evidence.workload.fresh.command_id
        facts = evidence.final.read(read_facts, evidence.final.world_dir)
        books = evidence.final.read(self.read_books, evidence.final.worker_dir)
        found = list(_open_commands(facts, [fresh]))
        attempts = {row.attempt_id for row in books.attempts if row.command_id == fresh}
        if not found and not any(row.attempt_id in attempts for row in books.checkpoints):
            found.append(f"command {fresh!r} ended without a new checkpoint")
        return broken_if(found)


def _open_commands(facts: CoordinatorFacts, wanted: list[str]) -> Iterator[str]:
    accepted = {ack.command_id for ack in facts.acks}
    ended = {event.command_id for event in facts.events if event.kind in ENDING_KINDS}
    deliveries = [delivery.command_id for delivery in facts.deliveries]
    for command_id in wanted:
        if command_id not in accepted:
            times = deliveries.count(command_id)
            yield f"command {command_id!r} was delivered {times} times and never acknowledged"
        elif command_id not in ended:
            yield f"command {command_id!r} was acknowledged and never ended"
