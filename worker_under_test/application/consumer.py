"""Consumes the commands of a session: work goes side by side, orders in their turn."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from worker_under_test.application.admission import Admission
    from worker_under_test.application.current_session import CurrentSession
    from worker_under_test.application.execution import Execution
    from worker_under_test.application.intake import Intake
    from worker_under_test.application.orders import Orders
    from worker_under_test.application.quiet import Quiet
    from worker_under_test.domain.command import Command
    from worker_under_test.ports.bundle import Ports
    from worker_under_test.ports.command_stream import Delivery


class Consumer:
    """Takes what the stream brings and begins what follows from it.

    Commands at work are handled at once and side by side. An order waits until every command that
    came before it is saved or refused, and what comes after waits for the order: what a drain, a
    cancel or a limit means depends on its place.

    Args:
        ports: The command stream.
        session: The session whose commands are consumed.
        quiet: Told what is in hand.
        intake: Saves and confirms commands.
        orders: Obeys orders.
        execution: Executes attempts.
        admission: Knows who was turned away.
    """

    def __init__(
        self,
        ports: Ports,
        session: CurrentSession,
        quiet: Quiet,
        *,
        intake: Intake,
        orders: Orders,
        execution: Execution,
        admission: Admission,
    ) -> None:
        self._ports = ports
        self._session = session
        self._quiet = quiet
        self._intake = intake
        self._orders = orders
        self._execution = execution
        self._admission = admission
        self._undecided: set[asyncio.Future[None]] = set()

    async def run(self, attempts: asyncio.TaskGroup) -> None:
        """Consume until the stream fails.

        Args:
            attempts: Where tasks begin that outlive the session.
        """
        for delivery in await self._ports.commands.open(self._session.session):
            await self._take(attempts, delivery)
        self._quiet.connected(caught_up=True)
        while True:
            await self._take(attempts, await self._ports.commands.next())

    async def readmit(self, attempts: asyncio.TaskGroup) -> None:
        """Ask for commands that were turned away, each time there may be room for them.

        Args:
            attempts: Where tasks begin that outlive the session.
        """
        while True:
            await self._admission.room.wait()
            turned_away = self._admission.take_turned_away()
            try:
                for delivery in await self._ports.commands.waiting(self._session.session):
                    received = self._intake.receive_again(delivery, turned_away)
                    if received is not None:
                        self._begin_work(attempts, received.command)
            finally:
                self._quiet.put_down()

    def begin(
        self, attempts: asyncio.TaskGroup, work: Callable[[], Awaitable[None]]
    ) -> asyncio.Task[None]:
        """Begin work that is in hand from now until it ends.

        Args:
            attempts: Where the task begins.
            work: The work.
        """
        # Counted now and not when the task first runs: the worker must not look idle in between.
        self._quiet.take()
        return attempts.create_task(self._see_through(work))

    async def _see_through(self, work: Callable[[], Awaitable[None]]) -> None:
        await work()
        self._quiet.put_down()

    async def _take(self, attempts: asyncio.TaskGroup, delivery: Delivery) -> None:
        received = self._intake.receive(delivery)
        if received is None:
            return
        if received.order is None:
            self._begin_work(attempts, received.command)
            return
        while self._undecided:
            await asyncio.wait(set(self._undecided))
        # It outlives the session: an order that is saved must also be put in force.
        obeying = partial(self._orders.obey, received.command, received.order)
        await asyncio.wait((self.begin(attempts, obeying),))

    def _begin_work(self, attempts: asyncio.TaskGroup, command: Command) -> None:
        decided = asyncio.get_running_loop().create_future()
        self._undecided.add(decided)
        self.begin(attempts, partial(self._work, command, decided))

    async def _work(self, command: Command, decided: asyncio.Future[None]) -> None:
        try:
            saved = await self._intake.save(command)
        finally:
            self._undecided.discard(decided)
            if not decided.done():
                decided.set_result(None)
        acknowledged = await self._intake.answer(command, saved)
        attempt = self._intake.attempt_at(command, saved)
        if attempt is not None:
            await self._execution.run(attempt, acknowledged=acknowledged)
