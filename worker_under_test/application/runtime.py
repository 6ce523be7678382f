"""The life of the worker: register, recover, consume, report (ATT-11)."""

from __future__ import annotations

import asyncio
import dataclasses
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.application.admission import Admission
from worker_under_test.application.backoff import Backoff
from worker_under_test.application.confirmation import Confirmation
from worker_under_test.application.consumer import Consumer
from worker_under_test.application.current_session import CurrentSession
from worker_under_test.application.execution import Execution
from worker_under_test.application.intake import Intake
from worker_under_test.application.orders import Orders
from worker_under_test.application.quiet import Quiet
from worker_under_test.application.recovery import Recovery
from worker_under_test.application.running import Running
from worker_under_test.application.sender import Sender
from worker_under_test.domain.errors import Kind, is_delivery, kind_of, retryable_delivery
from worker_under_test.domain.recovery import Decision
from worker_under_test.ports.bundle import Ports

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker_under_test.application.recovery import Recovered
    from worker_under_test.domain.registration import NodeInventory, Registration
    from worker_under_test.ports.capability import CapabilityExecutor
    from worker_under_test.ports.clock import Clock
    from worker_under_test.ports.command_stream import CommandStream
    from worker_under_test.ports.control_plane import ControlPlane
    from worker_under_test.ports.id_generator import IDGenerator
    from worker_under_test.ports.local_store import LocalStore, Remaining
    from worker_under_test.ports.observation import Observation

RETRY_INITIAL_S = 1.0
"""Default of the first wait after a failed delivery, in seconds (OUT-34)."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The classes that the runtime is made of; a variant of the worker replaces one.

    Attributes:
        admission: Decides about new commands.
        intake: Takes commands in.
        orders: Obeys orders.
        execution: Executes attempts.
        recovery: Decides at a restart.
        sender: Delivers events.
        consumer: Consumes the stream.
    """

    admission: type[Admission] = Admission
    intake: type[Intake] = Intake
    orders: type[Orders] = Orders
    execution: type[Execution] = Execution
    recovery: type[Recovery] = Recovery
    sender: type[Sender] = Sender
    consumer: type[Consumer] = Consumer


class Runtime:
    """The long-running application.

    A runtime lives once: `run` it, and make another for the next life.

    Args:
        registration: Who the worker is.
        control: Requests to the coordinator.
        commands: Where commands come from.
        store: The local database.
        capabilities: What does the work.
        ids: Makes identities.
        observation: What an operator sees.
        clock: Where the worker waits.
        retry_initial_s: The first wait after a failed delivery, in seconds.
        resource_inventory: Reads what the node has room for, at each admission; None takes what
            is registered. Not checked here (REG-07).
        roles: The classes the runtime is made of.

    Raises:
        DomainError: Of kind invalid, if the registration is incomplete (REG-01, REG-02).
        ValueError: A port is missing (REG-03).
    """

    def __init__(
        self,
        registration: Registration,
        *,
        control: ControlPlane | None,
        commands: CommandStream | None,
        store: LocalStore | None,
        capabilities: CapabilityExecutor | None,
        ids: IDGenerator | None,
        observation: Observation | None,
        clock: Clock,
        retry_initial_s: float = RETRY_INITIAL_S,
        resource_inventory: Callable[[], NodeInventory] | None = None,
        roles: Roles | None = None,
    ) -> None:
        registration.validate()
        if (
            control is None
            or commands is None
            or store is None
            or capabilities is None
            or ids is None
            or observation is None
        ):
            raise ValueError(
                "control plane, command stream, local store, capability, ID generator, "
                "and observer are required"
            )
        ports = Ports(control, commands, store, capabilities, ids, observation, clock)
        roles = roles or Roles()
        inventory = registration.inventory
        self._ports = ports
        self._registration = registration
        self._backoff = Backoff(clock, retry_initial_s)
        self._session = CurrentSession()
        self._quiet = Quiet()
        self._running = Running()
        confirmation = Confirmation(ports, self._session)
        self._admission = roles.admission(resource_inventory or (lambda: inventory), observation)
        self._execution = roles.execution(
            ports, self._session, self._quiet, self._running, self._admission
        )
        self._recovery = roles.recovery(ports)
        self._sender = roles.sender(
            ports, self._session, self._quiet, Backoff(clock, retry_initial_s)
        )
        self._consumer = roles.consumer(
            ports,
            self._session,
            self._quiet,
            intake=roles.intake(ports, confirmation, self._admission),
            orders=roles.orders(ports, confirmation, self._admission, self._running, self._quiet),
            execution=self._execution,
            admission=self._admission,
        )

    async def run(self, stop: asyncio.Event | None = None) -> None:
        """Live until stopped, and leave nothing open.

        Args:
            stop: Set to end gracefully: attempts in progress stay RUNNING in the store, and the
                next start recovers them. Cancelling the caller does the same.

        Raises:
            Exception: What ended the life: a failure of the local store, or a registration that
                was refused. One error, even if several tasks failed.
        """
        life = asyncio.create_task(self._live())
        stopped = asyncio.create_task((stop or asyncio.Event()).wait())
        try:
            await asyncio.wait((life, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            life.cancel()
            # Does not raise what the tasks raised; close only when nothing uses the ports.
            await asyncio.wait((life, stopped))
            await self._close()
        if not life.cancelled() and (error := life.exception()) is not None:
            raise _first_cause(error)

    async def flush(self) -> None:
        """Ask the sender for one round of sending; see `Sender.flush`."""
        await self._sender.flush()

    async def remaining(self) -> Remaining:
        """Say what keeps a draining worker from being drained (DRN-07)."""
        return await self._ports.store.remaining()

    async def _close(self) -> None:
        async with AsyncExitStack() as closing:  # Each is closed even if another fails.
            closing.push_async_callback(self._ports.store.close)
            closing.push_async_callback(self._ports.control.close)
            closing.push_async_callback(self._ports.commands.close)

    async def _live(self) -> None:
        await self._ports.store.open()
        incarnation = await self._ports.store.begin_incarnation(self._registration.instance_id)
        self._registration = dataclasses.replace(
            self._registration, instance_id=incarnation.instance_id
        )
        self._ports.ids.begin(incarnation.boot)
        self._admission.restore(await self._ports.store.directives())
        await self._register()
        recovered = await self._recovery.scan(incarnation.boot)
        # Attempts belong to the life and not to a session: they go on when a session ends.
        async with asyncio.TaskGroup() as attempts:
            for each in recovered:
                self._consumer.begin(attempts, partial(self._continue, each))
            while True:
                await self._serve_session(attempts)
                await self._backoff.wait()
                await self._register()

    async def _register(self) -> None:
        while True:
            crash_point("session.register.before")
            try:
                session = await self._ports.control.register(self._registration)
            except Exception as error:
                if not retryable_delivery(error):
                    raise
                self._ports.observation.event("session registration deferred", error)
                await self._backoff.wait()
                continue
            self._session.renew(session)
            crash_point("session.register.after")
            return

    async def _serve_session(self, attempts: asyncio.TaskGroup) -> None:
        """Send and consume until a delivery failure ends the session (SES-02, OUT-32)."""
        self._quiet.connected(caught_up=False)
        try:
            async with asyncio.TaskGroup() as session:
                session.create_task(self._sender.run())
                session.create_task(self._consumer.run(attempts))
                session.create_task(self._consumer.readmit(attempts))
        except ExceptionGroup as group:
            if not is_delivery(group):
                raise
            error = _first_cause(group)
            self._ports.observation.event("session ended", error)
            if kind_of(error) not in (Kind.UNAUTHENTICATED, Kind.FORBIDDEN):
                # A cut connection is tried again soon; a refusal is not hammered (DEL-11).
                self._backoff.reset()

    async def _continue(self, recovered: Recovered) -> None:
        match recovered.decision:
            case Decision.UNKNOWN:
                await self._execution.give_up(recovered.attempt, recovered.reason)
            case Decision.CANCEL:
                await self._execution.end_cancelled(recovered.attempt, recovered.reason)
            case _:
                await self._execution.run(recovered.attempt)


def _first_cause(error: BaseException) -> BaseException:
    """Return the error that a group of tasks ended with: a local one before a delivery."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    causes = [_first_cause(member) for member in error.exceptions]
    return next((cause for cause in causes if not is_delivery(cause)), causes[0])
