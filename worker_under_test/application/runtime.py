"""The life of the worker: register, recover, consume, report (ATT-11)."""

from __future__ import annotations

import asyncio
import dataclasses
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.application.backoff import Backoff
from worker_under_test.application.current_session import CurrentSession
from worker_under_test.application.execution import Execution
from worker_under_test.application.intake import Intake
from worker_under_test.application.quiet import Quiet
from worker_under_test.application.recovery import Recovery
from worker_under_test.application.sender import Sender
from worker_under_test.domain.errors import Kind, is_delivery, kind_of, retryable_delivery
from worker_under_test.domain.recovery import Decision
from worker_under_test.ports.bundle import Ports

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from worker_under_test.application.recovery import Recovered
    from worker_under_test.domain.registration import Registration
    from worker_under_test.ports.capability import CapabilityExecutor
    from worker_under_test.ports.clock import Clock
    from worker_under_test.ports.command_stream import CommandStream, Delivery
    from worker_under_test.ports.control_plane import ControlPlane
    from worker_under_test.ports.id_generator import IDGenerator
    from worker_under_test.ports.local_store import LocalStore
    from worker_under_test.ports.observation import Observation

RETRY_INITIAL_S = 1.0
"""Default of the first wait after a failed delivery, in seconds (OUT-34)."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The classes that the runtime is made of; a variant of the worker replaces one.

    Attributes:
        intake: Takes commands in.
        execution: Executes attempts.
        recovery: Decides at a restart.
        sender: Delivers events.
    """

    intake: type[Intake] = Intake
    execution: type[Execution] = Execution
    recovery: type[Recovery] = Recovery
    sender: type[Sender] = Sender


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
        self._ports = ports
        self._registration = registration
        self._backoff = Backoff(clock, retry_initial_s)
        self._session = CurrentSession()
        self._quiet = Quiet()
        self._intake = roles.intake(ports, self._session)
        self._execution = roles.execution(ports, self._session, self._quiet)
        self._recovery = roles.recovery(ports)
        self._sender = roles.sender(
            ports, self._session, self._quiet, Backoff(clock, retry_initial_s)
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

    async def _close(self) -> None:
        async with AsyncExitStack() as closing:  # Each is closed even if another fails.
            closing.push_async_callback(self._ports.store.close)
            closing.push_async_callback(self._ports.control.close)
            closing.push_async_callback(self._ports.commands.close)

    async def _live(self) -> None:
        await self._ports.store.open()
        life = await self._ports.store.begin_life(self._registration.instance_id)
        self._registration = dataclasses.replace(self._registration, instance_id=life.instance_id)
        self._ports.ids.begin(life.boot)
        await self._register()
        recovered = await self._recovery.scan(life.boot)
        # Attempts belong to the life and not to a session: they go on when a session ends.
        async with asyncio.TaskGroup() as attempts:
            for each in recovered:
                self._begin(attempts, partial(self._continue, each))
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
                session.create_task(self._consume(attempts))
        except ExceptionGroup as group:
            if not is_delivery(group):
                raise
            error = _first_cause(group)
            self._ports.observation.event("session ended", error)
            if kind_of(error) not in (Kind.UNAUTHENTICATED, Kind.FORBIDDEN):
                # A cut connection is tried again soon; a refusal is not hammered (DEL-11).
                self._backoff.reset()

    async def _consume(self, attempts: asyncio.TaskGroup) -> None:
        for delivery in await self._ports.commands.open(self._session.session):
            self._begin(attempts, partial(self._handle, delivery))
        self._quiet.connected(caught_up=True)
        while True:
            delivery = await self._ports.commands.next()
            self._begin(attempts, partial(self._handle, delivery))

    def _begin(self, attempts: asyncio.TaskGroup, work: Callable[[], Awaitable[None]]) -> None:
        # Counted now and not when the task first runs: the worker must not look idle in between.
        self._quiet.take()
        attempts.create_task(self._see_through(work))

    async def _see_through(self, work: Callable[[], Awaitable[None]]) -> None:
        await work()
        self._quiet.put_down()

    async def _handle(self, delivery: Delivery) -> None:
        command = self._intake.receive(delivery)
        if command is None:
            return
        admitted = await self._intake.accept(command)
        if admitted is not None:
            await self._execution.run(admitted.attempt, acknowledged=admitted.acknowledged)

    async def _continue(self, recovered: Recovered) -> None:
        if recovered.decision is Decision.UNKNOWN:
            await self._execution.give_up(recovered.attempt, recovered.reason)
        else:
            await self._execution.run(recovered.attempt)


def _first_cause(error: BaseException) -> BaseException:
    """Return the error that a group of tasks ended with: a local one before a delivery."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    causes = [_first_cause(member) for member in error.exceptions]
    return next((cause for cause in causes if not is_delivery(cause)), causes[0])
