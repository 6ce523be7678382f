"""A lane for the cells of one column: kills a worker, and says what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from matrix_kinds import Cell, Kind, effects_of, losing_replies, steps_again

from harness.experiment.lane import LaneServer
from harness.experiment.lane_client import LaneClient
from harness.experiment.rig import Rig
from harness.images.digest import opened
from harness.images.root import default_root
from harness.model.result import Verdict
from harness.model.schedule import parse
from harness.world.coordinator.facts import ENDING_KINDS, read_facts
from scenarios.reference_books import DATABASE, read_books

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.workload import Command

_UNSCOPED = ("store.", "backoff.", "recovery.scan.")
_BY_RUN = ("step.", "steps.", "snapshot.", "gate.")


@dataclass(frozen=True)
class CameTo:
    """What came of the kills.

    Attributes:
        durable: What is durable of the command at the last kill.
        decisions: What each restart decided about it.
        cell: What it came to.
    """

    durable: str
    decisions: frozenset[str]
    cell: Cell


class Column:
    """A lane that is warmed for the worker of one kind.

    Args:
        name: Name of the kind.
        kind: The kind.
    """

    def __init__(self, name: str, kind: Kind) -> None:
        self._command_id = kind.command.command_id
        self._name = f"matrix-{name.replace(' ', '-')}"
        self._lane = LaneClient(default_root())
        self._lane.call(LaneServer.prepare, kind.scenario(self._name))
        self._lane.call(LaneServer.prepare, losing_replies(f"{self._name}-lossy", kind))
        self._worker_dir: Path
        self._world_dir: Path

    def stop(self) -> None:
        """End the lane."""
        self._lane.stop()

    def open(self, *, lossy: bool = False) -> None:
        """Begin a cell.

        Args:
            lossy: Whether replies are lost; see `losing_replies`.
        """
        name = f"{self._name}-lossy" if lossy else self._name
        self._worker_dir, self._world_dir = self._lane.call(LaneServer.open, name, 0)

    def close(self) -> None:
        """End a cell."""
        self._lane.call(LaneServer.close)

    def kill_at(self, label: str) -> None:
        """Start a life and kill it at its first hit of a label that is about the command."""
        (moment,) = parse(f"{label}{self._scope(label)}=kill").moments
        number = self._lane.call_rig(Rig.start)
        halt = self._lane.call_rig(Rig.run_until, number, moment)
        assert halt.hit is not None, f"{label} was not reached"
        assert halt.hit.label == label
        self._lane.call_rig(Rig.kill, number)

    def _scope(self, label: str) -> str:
        if label.startswith(_UNSCOPED):
            return ""
        if label.startswith("order."):
            return "[order=control.drain]"
        return f"[{'run' if label.startswith(_BY_RUN) else 'command'}={self._command_id}]"

    def offer(self, command: Command) -> None:
        """Offer one more command."""
        self._lane.call_rig(Rig.offer, command)

    def settle(self) -> None:
        """Let a life become quiet."""
        self._lane.call(LaneServer.settle)

    def finish(self) -> CameTo:
        """Let the worker recover, have everything checked, and say what came of it."""
        durable = self.durable()
        self.settle()
        books, facts = read_books(self._worker_dir), read_facts(self._world_dir)
        attempts = {row.attempt_id for row in books.attempts if row.command_id == self._command_id}
        (end,) = (
            e.kind
            for e in facts.events
            if e.kind in ENDING_KINDS and e.command_id == self._command_id
        )
        effects = effects_of(self._command_id, self._world_dir)
        again = steps_again(self._command_id, self._world_dir)
        verdict, violations, note = self._lane.call(LaneServer.check)
        assert verdict is Verdict.HELD, (violations, note)
        decisions = [row.decision for row in books.decisions if row.attempt_id in attempts]
        last = decisions[-1] if decisions else ""
        return CameTo(durable, frozenset(decisions), Cell(last, end, effects, again))

    def durable(self) -> str:
        """Say what worker and coordinator durably have of the command."""
        books = read_books(self._worker_dir)
        states = [row.state for row in books.attempts if row.command_id == self._command_id]
        if not states:
            return "none"
        reported = [row.reported for row in books.outbox if row.command_id == self._command_id]
        if not reported:
            return "pending" if states == ["PENDING"] else "begun"
        known = [e for e in read_facts(self._world_dir).events if e.command_id == self._command_id]
        if reported == [True]:
            return "reported"
        return "known to the server" if known else "unsent"

    def draining(self) -> bool:
        """Read whether the worker durably drains; nothing is alive."""
        with opened(self._worker_dir / DATABASE) as database:
            return bool(database.execute("SELECT draining FROM directives").fetchone()[0])

    def acknowledged(self, command_id: str) -> bool:
        """Tell whether the coordinator heard that a command is accepted."""
        return command_id in {ack.command_id for ack in read_facts(self._world_dir).acks}

    def ends(self, command_id: str) -> int:
        """Count the events that ended a command."""
        events = read_facts(self._world_dir).events
        return sum(e.command_id == command_id and e.kind in ENDING_KINDS for e in events)

    def refusals(self, command_id: str) -> list[str]:
        """Return the reasons for which a command was refused."""
        refusals = read_facts(self._world_dir).refusals
        return [each.reason for each in refusals if each.command_id == command_id]
