"""Doubles of the worker's ports, in memory, with failures on order."""

from __future__ import annotations

import asyncio
import heapq
import json
from collections import deque
from typing import TYPE_CHECKING

from worker_under_test.application.admission import Admission
from worker_under_test.application.backoff import Backoff
from worker_under_test.application.confirmation import Confirmation
from worker_under_test.application.current_session import CurrentSession
from worker_under_test.application.execution import Execution
from worker_under_test.application.intake import Intake
from worker_under_test.application.quiet import Quiet
from worker_under_test.application.running import Running
from worker_under_test.domain.attempt import (
    UNFINISHED,
    Attempt,
    AttemptState,
    UnfinishedAttempt,
    require_transition,
)
from worker_under_test.domain.command import Command
from worker_under_test.domain.errors import DeliveryError, DomainError, Kind
from worker_under_test.domain.event import FINAL_STATE, AttemptEvent, Event, EventKind
from worker_under_test.domain.order import Cancel, Directives, LateAnswer, Reconcile, is_control
from worker_under_test.domain.recovery import Decision, Proposal, RecoveryPolicy
from worker_under_test.domain.registration import Life, NodeInventory, Session
from worker_under_test.ports.bundle import Ports
from worker_under_test.ports.local_store import Acceptance, Accepted, Remaining, Standing, Started
from worker_under_test.ports.remote import Reply

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from worker_under_test.domain.artifact import Artifact
    from worker_under_test.domain.json_value import JsonObject, JsonValue
    from worker_under_test.domain.order import Order
    from worker_under_test.domain.progress import Checkpoint, Progress
    from worker_under_test.domain.recovery import RecoveryDecision
    from worker_under_test.domain.registration import Registration
    from worker_under_test.ports.capability import ProgressReporter
    from worker_under_test.ports.command_stream import Delivery

SETTLING_ROUNDS = 50


async def settled() -> None:
    """Let every task run until it waits for something that only the test can give."""
    for _ in range(SETTLING_ROUNDS):
        await asyncio.sleep(0)


def refused(kind: Kind) -> DeliveryError:
    """Return a delivery that the coordinator refused."""
    error = DeliveryError("refused")
    error.__cause__ = DomainError(kind, "refused")
    return error


def network_failure() -> DeliveryError:
    """Return a delivery that failed on the wire."""
    error = DeliveryError("lost")
    error.__cause__ = ConnectionResetError("reset")
    return error


class Faults:
    """Errors that the next calls of a method raise, in order; None lets a call pass."""

    def __init__(self, log: list[str]) -> None:
        self.log = log
        self.planned: dict[str, deque[Exception | None]] = {}

    def plan(self, method: str, *errors: Exception | None) -> None:
        """Plan what the next calls of a method raise."""
        self.planned.setdefault(method, deque()).extend(errors)

    def call(self, method: str, about: str = "") -> None:
        """Note a call, and raise what is planned for it."""
        self.log.append(f"{method} {about}".strip())
        queue = self.planned.get(method)
        error = queue.popleft() if queue else None
        if error is not None:
            raise error


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

    async def begin_life(self, instance_id: str) -> Life:
        """Count this start."""
        self.boot += 1
        return Life(instance_id, self.boot)

    async def accept(self, command: Command, attempt_id: str) -> Accepted:
        """Save a command and its attempt."""
        self.faults.call("accept", command.command_id)
        if command.command_id in self.commands:
            known, known_attempt = self.commands[command.command_id]
            same = known.digest == command.digest
            return Accepted(Acceptance.REPEATED if same else Acceptance.CONFLICTING, known_attempt)
        self.put(Attempt(attempt_id, command), AttemptState.PENDING)
        return Accepted(Acceptance.ACCEPTED, attempt_id)

    async def accept_order(
        self, command: Command, order: Order, attempt_id: str, event_id: str
    ) -> Accepted:
        """Save an order with its answer."""
        self.faults.call("accept_order", command.command_id)
        if command.command_id in self.commands:
            known, known_attempt = self.commands[command.command_id]
            same = known.digest == command.digest
            return Accepted(Acceptance.REPEATED if same else Acceptance.CONFLICTING, known_attempt)
        body: dict[str, JsonValue] = {}
        if isinstance(order, Cancel):
            _, target = self.commands.get(order.target, (None, ""))
            found = self.states[target].value if target else "none"
            if found in UNFINISHED:
                self.cancels.add(order.target)
            body = {"target": order.target, "found": found}
        if isinstance(order, Reconcile | LateAnswer):
            _, target = self.commands.get(order.target, (None, ""))
            found = self.states[target].value if target else "none"
            body = {"target": order.target, "found": found}
            if isinstance(order, Reconcile):
                if found == AttemptState.UNKNOWN:
                    self.reconciled.setdefault(order.target, order.answer.value)
                body["settled"] = self.reconciled.get(order.target)
            elif target:
                self.late_answers.append(order)
        self.orders = self.orders.after(order)
        self.put(Attempt(attempt_id, command), AttemptState.SUCCEEDED)
        self.events.append(
            Event(event_id, command.command_id, attempt_id, EventKind.SUCCEEDED, body)
        )
        return Accepted(Acceptance.ACCEPTED, attempt_id)

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


class FakeControl:
    """A `ControlPlane` that remembers."""

    def __init__(self, log: list[str]) -> None:
        self.faults = Faults(log)
        self.sessions = 0
        self.sent: list[Event] = []
        self.sent_under: list[str] = []
        self.refused: list[tuple[str, str]] = []

    async def register(self, registration: Registration) -> Session:
        """Number a session."""
        self.faults.call("register", registration.instance_id)
        self.sessions += 1
        return Session(f"session-{self.sessions}")

    async def acknowledge(self, session: Session, command_id: str) -> None:
        """Note an ACK."""
        self.faults.call("acknowledge", command_id)

    async def refuse(self, session: Session, command_id: str, reason: str) -> None:
        """Note a refusal."""
        self.refused.append((command_id, reason))
        self.faults.call("refuse", command_id)

    async def send_event(self, session: Session, event: Event) -> None:
        """Note an event; it counts as stored even if the reply is planned to be lost."""
        self.sent.append(event)
        self.sent_under.append(session.session_id)
        self.faults.call("send_event", event.event_id)

    async def heartbeat(self, session: Session, attempt: Attempt, progress: Progress) -> None:
        """Note a heartbeat."""
        self.faults.call("heartbeat", attempt.command.command_id)

    async def close(self) -> None:
        """Note the call."""
        self.faults.call("close_control")


class FakeStream:
    """A `CommandStream` that a test feeds."""

    def __init__(self, log: list[str]) -> None:
        self.faults = Faults(log)
        self.backlogs: deque[list[Delivery]] = deque()
        self.held: list[Delivery] = []
        self.live: asyncio.Queue[Delivery | Exception] = asyncio.Queue()

    async def open(self, session: Session) -> list[Delivery]:
        """Return the next planned backlog, or an empty one."""
        self.faults.call("open_stream", session.session_id)
        return self.backlogs.popleft() if self.backlogs else []

    async def waiting(self, session: Session) -> list[Delivery]:
        """Return what the test says is waiting."""
        self.faults.call("waiting")
        return list(self.held)

    async def next(self) -> Delivery:
        """Wait for what the test feeds."""
        delivery = await self.live.get()
        if isinstance(delivery, Exception):
            raise delivery
        return delivery

    async def close(self) -> None:
        """Note the call."""
        self.faults.call("close_stream")


async def succeed(command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
    """Do nothing, successfully."""
    return AttemptEvent(EventKind.SUCCEEDED, {"done": command.command_id})


class FakeCapabilities:
    """A `CapabilityExecutor` of one capability, ``work``, whose work a test gives."""

    def __init__(self, log: list[str]) -> None:
        self.faults = Faults(log)
        self.work: Callable[[Command, ProgressReporter], Awaitable[AttemptEvent | None]] = succeed
        self.policies: dict[str, RecoveryPolicy] = {
            "work": RecoveryPolicy.RECOMPUTE,
            "transfer": RecoveryPolicy.RESUME,
        }

    def policy_of(self, command: Command) -> RecoveryPolicy | None:
        """Return the policy of an installed capability."""
        return self.policies.get(command.capability)

    def recover(self, command: Command, checkpoint: Checkpoint | None) -> Proposal:
        """Propose what the policy is called."""
        return Proposal(Decision(self.policies[command.capability].value), "so it is declared")

    async def execute(self, command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
        """Do the test's work."""
        self.faults.call("execute", command.command_id)
        return await self.work(command, reporter)


class FakeRemote:
    """A `Remote` whose answers a test gives, by method and path without query."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, JsonObject | None]] = []
        self.answers: dict[tuple[str, str], deque[Reply | Exception]] = {}

    def answer(self, method: str, path: str, *replies: Reply | Exception | JsonObject) -> None:
        """Plan the next answers; the last one is given for ever."""
        planned = self.answers.setdefault((method, path), deque())
        for each in replies:
            if isinstance(each, Reply | Exception):
                planned.append(each)
            else:
                planned.append(Reply(200, json.dumps(each).encode()))

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: JsonObject | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Give the next answer."""
        self.asked.append((method, path, body))
        planned = self.answers[method, path.partition("?")[0]]
        given = planned.popleft() if len(planned) > 1 else planned[0]
        if isinstance(given, Exception):
            raise given
        return given

    def times(self, method: str, path: str) -> int:
        """Count the requests made."""
        return sum((m, p.partition("?")[0]) == (method, path) for m, p, _ in self.asked)


class CountedIds:
    """An `IDGenerator` that counts."""

    def __init__(self) -> None:
        self.boot = 0
        self.made = 0

    def begin(self, boot: int) -> None:
        """Remember the boot."""
        self.boot = boot

    def new(self, kind: str) -> str:
        """Count."""
        self.made += 1
        return f"{kind}-{self.boot}-{self.made}"


class Observed:
    """An `Observation` that remembers."""

    def __init__(self) -> None:
        self.events: list[tuple[str, BaseException | None]] = []

    def event(self, name: str, error: BaseException | None = None, **about: str) -> None:
        """Remember an event."""
        self.events.append((name, error))

    @property
    def names(self) -> list[str]:
        """What was observed, in order."""
        return [name for name, _ in self.events]


class VirtualClock:
    """A `Clock` whose time only a test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept: list[float] = []
        self._timers: list[tuple[float, int, asyncio.Future[None]]] = []

    def _timer(self, delay_s: float) -> asyncio.Future[None]:
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._timers, (self.now_s + delay_s, len(self._timers), future))
        return future

    def at(self, time_s: float, action: Callable[[], object]) -> None:
        """Do something at a time."""
        self._timer(time_s - self.now_s).add_done_callback(lambda _: action())

    async def sleep(self, delay_s: float) -> None:
        """Back off."""
        self.slept.append(delay_s)
        await self._timer(delay_s)

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        """Idle."""
        timer = self._timer(timeout_s)
        woken = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait((timer, woken), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            woken.cancel()

    async def run_until(self, time_s: float) -> None:
        """Let time pass, one timer after the other."""
        await settled()
        while self._timers and self._timers[0][0] <= time_s:
            when_s, _, future = heapq.heappop(self._timers)
            if future.done():
                continue
            self.now_s = when_s
            future.set_result(None)
            await settled()
        self.now_s = time_s


class Bench:
    """All doubles together, sharing one log of calls, with a session registered."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.store = MemoryStore(self.log)
        self.control = FakeControl(self.log)
        self.stream = FakeStream(self.log)
        self.capabilities = FakeCapabilities(self.log)
        self.ids = CountedIds()
        self.observed = Observed()
        self.clock = VirtualClock()
        self.quiet = Quiet()
        self.session = CurrentSession()
        self.session.renew(Session("session-0"))
        self.backoff = Backoff(self.clock, 1.0)
        self.room = NodeInventory(1000, 4)
        self.running = Running()
        self.admission = Admission(lambda: self.room, self.observed)
        self.ports = Ports(
            control=self.control,
            commands=self.stream,
            store=self.store,
            capabilities=self.capabilities,
            ids=self.ids,
            observation=self.observed,
            clock=self.clock,
        )
        self.confirmation = Confirmation(self.ports, self.session)

    def intake(self) -> Intake:
        """Return an intake on this bench."""
        return Intake(self.ports, self.confirmation, self.admission)

    def execution(self) -> Execution:
        """Return an execution on this bench."""
        return Execution(self.ports, self.session, self.quiet, self.running, self.admission)


def command(command_id: str = "c1", capability: str = "work", **payload: str) -> Command:
    """Return a command."""
    return Command(command_id, capability, 1, dict(payload))


def attempt(command_id: str = "c1", capability: str = "work") -> Attempt:
    """Return an attempt at a command."""
    return Attempt(f"attempt-{command_id}", command(command_id, capability))


def saved_event(number: int) -> Event:
    """Return an event as it is saved."""
    return Event(f"event-{number}", f"c{number}", f"attempt-c{number}", EventKind.SUCCEEDED, {})
