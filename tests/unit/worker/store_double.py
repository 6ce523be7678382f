"""The worker's store in memory, with failures on order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planned_faults import Faults

from worker_under_test.domain.attempt import (
    UNFINISHED,
    Attempt,
    AttemptState,
    UnfinishedAttempt,
    require_transition,
)
from worker_under_test.domain.event import FINAL_STATE, Event, EventKind
from worker_under_test.domain.order import Cancel, Directives, LateAnswer, Reconcile, is_control
from worker_under_test.domain.registration import Incarnation
from worker_under_test.ports.local_store import Acceptance, Accepted, Remaining, Standing, Started

if TYPE_CHECKING:
    from worker_under_test.domain.artifact import Artifact
    from worker_under_test.domain.command import Command
    from worker_under_test.domain.json_value import JsonValue
    from worker_under_test.domain.order import Order
    from worker_under_test.domain.progress import Checkpoint
    from worker_under_test.domain.recovery import RecoveryDecision


class MemoryStore:
    """A `LocalStore` in memory."""

    def __init__(self, log: list[str]) -> None:
        self.faults = Faults(log)
        self.boot = 0
        self.commands: dict[str, tuple[Command, str]] = {}
        self.attempts: dict[str, Attempt] = {}
        self.states: dict[str, AttemptState] = {}
        self.checkpoints: dict[str, Checkpoint] = {}
        self.events: list[Event] = []
        self.reported: list[str] = []
        self.decisions: list[RecoveryDecision] = []
        self.acknowledged: list[str] = []
        self.orders = Directives()
        self.cancels: set[str] = set()
        self.reconciled: dict[str, str] = {}
        self.late_answers: list[LateAnswer] = []

    async def open(self) -> None:
        """Note the call."""
        self.faults.call("open")

    async def close(self) -> None:
        """Note the call."""
        self.faults.call("close")

    async def begin_incarnation(self, instance_id: str) -> Incarnation:
        """Count this start."""
        self.boot += 1
        return Incarnation(instance_id, self.boot)

    async def accept(self, command: Command, attempt_id: str) -> Accepted:
        """Save a command and its attempt."""
        self.faults.call("accept", command.command_id)
        if (known := self._known(command)) is not None:
            return known
        self.put(Attempt(attempt_id, command), AttemptState.PENDING)
        return Accepted(Acceptance.ACCEPTED, attempt_id)

    async def accept_order(
        self, command: Command, order: Order, attempt_id: str, event_id: str
    ) -> Accepted:
        """Save an order with its answer."""
        self.faults.call("accept_order", command.command_id)
        if (known := self._known(command)) is not None:
            return known
        body: dict[str, JsonValue] = {}
        if isinstance(order, Cancel | Reconcile | LateAnswer):
            body = self._answer(order)
        self.orders = self.orders.after(order)
        self.put(Attempt(attempt_id, command), AttemptState.SUCCEEDED)
        self.events.append(
            Event(event_id, command.command_id, attempt_id, EventKind.SUCCEEDED, body)
        )
        return Accepted(Acceptance.ACCEPTED, attempt_id)

    def _known(self, command: Command) -> Accepted | None:
        if command.command_id not in self.commands:
            return None
        known, attempt_id = self.commands[command.command_id]
        same = known.digest == command.digest
        return Accepted(Acceptance.REPEATED if same else Acceptance.CONFLICTING, attempt_id)

    def _answer(self, order: Cancel | Reconcile | LateAnswer) -> dict[str, JsonValue]:
        _, target = self.commands.get(order.target, (None, ""))
        found = self.states[target].value if target else "none"
        body: dict[str, JsonValue] = {"target": order.target, "found": found}
        match order:
            case Cancel() if found in UNFINISHED:
                self.cancels.add(order.target)
            case Reconcile():
                if found == AttemptState.UNKNOWN:
                    self.reconciled.setdefault(order.target, order.answer.value)
                body["settled"] = self.reconciled.get(order.target)
            case LateAnswer() if target:
                self.late_answers.append(order)
        return body

    async def standing(self, command_id: str) -> Standing:
        """Count what is open."""
        count = sum(
            state in UNFINISHED and not is_control(self.attempts[key].command)
            for key, state in self.states.items()
        )
        return Standing(command_id in self.commands, count)

    async def directives(self) -> Directives:
        """Return what the orders add up to."""
        return self.orders

    async def remaining(self) -> Remaining:
        """Count what is left."""
        unknown = [
            key
            for key, state in self.states.items()
            if state is AttemptState.UNKNOWN
            and self.attempts[key].command.command_id not in self.reconciled
        ]
        return Remaining(
            sum(state in UNFINISHED for state in self.states.values()),
            len([event for event in self.events if event.event_id not in self.reported]),
            tuple(self.attempts[key].command.command_id for key in unknown),
        )

    async def commands_of_value(self) -> frozenset[str]:
        """Return the commands whose files must stay."""
        of_value = (*UNFINISHED, AttemptState.UNKNOWN)
        held = {
            self.attempts[k].command.command_id for k, s in self.states.items() if s in of_value
        }
        return frozenset(
            (held - self.reconciled.keys())
            | {event.command_id for event in await self.unreported()}
        )

    def put(self, attempt: Attempt, state: AttemptState) -> None:
        """Put an attempt there as an earlier life would have left it."""
        self.commands[attempt.command.command_id] = (attempt.command, attempt.attempt_id)
        self.attempts[attempt.attempt_id] = attempt
        self.states[attempt.attempt_id] = state

    async def unfinished(self) -> list[UnfinishedAttempt]:
        """Return what is not terminal, in the order of acceptance."""
        self.faults.call("unfinished")
        return [
            UnfinishedAttempt(
                self.attempts[key],
                state,
                self.checkpoints.get(key),
                cancelled=self.attempts[key].command.command_id in self.cancels,
            )
            for key, state in self.states.items()
            if state in UNFINISHED
        ]

    async def decide(self, decision: RecoveryDecision) -> None:
        """Save a decision."""
        self.faults.call("decide", decision.command_id)
        self.decisions.append(decision)
        if decision.found_state is not AttemptState.PENDING:
            self._move(decision.attempt_id, AttemptState.RECOVERING)

    async def start(self, attempt_id: str, *, acknowledged: bool) -> Started:
        """Save RUNNING, unless it was cancelled first."""
        command_id = self.attempts[attempt_id].command.command_id
        self.faults.call("start", command_id)
        if self.states[attempt_id] is AttemptState.PENDING and command_id in self.cancels:
            return Started(running=False)
        self._move(attempt_id, AttemptState.RUNNING)
        if acknowledged:
            self.acknowledged.append(attempt_id)
        return Started(running=True, checkpoint=self.checkpoints.get(attempt_id))

    async def save_checkpoint(self, attempt: Attempt, checkpoint: Checkpoint) -> bool:
        """Save a checkpoint if its number is higher."""
        self.faults.call("save_checkpoint", attempt.command.command_id)
        known = self.checkpoints.get(attempt.attempt_id)
        if known is not None and known.seq >= checkpoint.seq:
            return False
        self.checkpoints[attempt.attempt_id] = checkpoint
        return True

    async def finish(self, event: Event, artifacts: tuple[Artifact, ...]) -> None:
        """Save a result."""
        self.faults.call("finish", event.command_id)
        self._move(event.attempt_id, FINAL_STATE[event.kind])
        self.events.append(event)

    async def unreported(self) -> list[Event]:
        """Return the unsent events."""
        self.faults.call("unreported")
        return [event for event in self.events if event.event_id not in self.reported]

    async def mark_reported(self, event: Event) -> None:
        """Mark an event."""
        self.faults.call("mark_reported", event.event_id)
        self.reported.append(event.event_id)

    def _move(self, attempt_id: str, new: AttemptState) -> None:
        require_transition(self.states[attempt_id], new)
        self.states[attempt_id] = new
