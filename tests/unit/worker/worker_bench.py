"""All doubles of the worker's ports on one bench, and what is put on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from network_doubles import FakeControl, FakeStream
from planned_faults import Faults
from store_double import MemoryStore
from virtual_clock import VirtualClock

from worker_under_test.application.admission import Admission
from worker_under_test.application.backoff import Backoff
from worker_under_test.application.confirmation import Confirmation
from worker_under_test.application.current_session import CurrentSession
from worker_under_test.application.execution import Execution
from worker_under_test.application.intake import Intake
from worker_under_test.application.quiet import Quiet
from worker_under_test.application.running import Running
from worker_under_test.domain.attempt import (
    Attempt,
)
from worker_under_test.domain.command import Command
from worker_under_test.domain.event import AttemptEvent, Event, EventKind
from worker_under_test.domain.recovery import Decision, Proposal, RecoveryPolicy
from worker_under_test.domain.registration import NodeInventory, Session
from worker_under_test.ports.bundle import Ports

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from worker_under_test.domain.progress import Checkpoint
    from worker_under_test.ports.capability import ProgressReporter


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
