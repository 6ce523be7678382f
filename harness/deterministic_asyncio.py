"""A seeded scheduler for asyncio workers: the order of their I/O comes from a seed.

A worker that handles several commands at once is driven by replies that arrive in whatever order
the machine likes. Under a `Scheduler` every I/O operation of its ports is one turn, one turn is
taken at a time, and the next is drawn from a seeded generator when no task can go on without one.
So one seed gives one interleaving, and another seed another, while the I/O itself stays real.

`Scheduler.sleep` is a wait of virtual time: when nothing else can go on, the earliest sleeper is
woken at once, so a back-off of 30 seconds costs nothing.
"""

from __future__ import annotations

import asyncio
import heapq
import inspect
import random
import selectors
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

T = TypeVar("T")


class _Turn:
    """One operation; what it starts belongs to it for as long as it goes on."""

    over = False


_turn: ContextVar[_Turn | None] = ContextVar("turn", default=None)


def _inside_a_turn() -> bool:
    turn = _turn.get()
    return turn is not None and not turn.over


class Scheduler:
    """Draws the order of I/O operations.

    Args:
        seed: Text that decides every draw.
    """

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self._waiting: list[asyncio.Future[None]] = []
        self._sleeping: list[tuple[float, int, asyncio.Future[None]]] = []
        self._sleeps = 0
        self._taken = False
        self._when_blocked: list[Callable[[], None]] = []
        self.now_s = 0.0
        """Virtual time, in seconds since the start; only sleeping moves it."""

    def run(self, main: Callable[[], Coroutine[None, None, T]]) -> T:
        """Run a coroutine to its end on a new event loop under this scheduler.

        Args:
            main: Makes the coroutine.
        """
        with asyncio.Runner(loop_factory=lambda: _loop(self)) as runner:
            return runner.run(main())

    async def turn(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Wait for a turn, and do one I/O operation in it.

        Args:
            operation: Starts the operation; an operation inside it belongs to the same turn.
        """
        if _inside_a_turn():
            return await operation()
        ready = asyncio.get_running_loop().create_future()
        self._waiting.append(ready)
        try:
            await ready
        except asyncio.CancelledError:
            if ready.done() and not ready.cancelled():
                self._taken = False
            raise
        turn = _Turn()
        token = _turn.set(turn)
        try:
            return await operation()
        finally:
            _turn.reset(token)
            turn.over = True
            self._taken = False

    async def sleep(self, delay_s: float) -> None:
        """Wait in virtual time.

        Args:
            delay_s: How long, in seconds.

        Raises:
            RuntimeError: Called inside a turn, which would then never end.
        """
        if _inside_a_turn():
            raise RuntimeError("virtual time does not pass inside a turn")
        ready = asyncio.get_running_loop().create_future()
        self._sleeps += 1
        heapq.heappush(self._sleeping, (self.now_s + delay_s, self._sleeps, ready))
        await ready

    def serialize(self, port: T, *, free: frozenset[str] = frozenset()) -> T:
        """Return a port whose every coroutine method takes a turn.

        Args:
            port: An object with coroutine methods.
            free: Names of methods that wait for something without bound and take none.
        """
        return cast("T", _SerializedPort(port, self, free))

    def when_blocked(self, call: Callable[[], None]) -> None:
        """Have something called once, the next time that no task can go on.

        Args:
            call: For example sets an event, so that tasks can go on.
        """
        self._when_blocked.append(call)

    def open_next(self) -> bool:
        """Let the next operation through; called when no task can go on.

        Returns:
            Whether something can go on now.
        """
        if self._taken:
            return False
        self._waiting = [ready for ready in self._waiting if not ready.done()]
        if self._waiting:
            index = self._random.randrange(len(self._waiting))
            self._taken = True
            self._waiting.pop(index).set_result(None)
            return True
        while self._sleeping:
            wake_s, _, ready = heapq.heappop(self._sleeping)
            if not ready.done():
                self.now_s = wake_s
                ready.set_result(None)
                return True
        if self._when_blocked:
            self._when_blocked.pop(0)()
            return True
        return False


class _SerializedPort:
    def __init__(self, port: object, scheduler: Scheduler, free: frozenset[str]) -> None:
        self._port = port
        self._scheduler = scheduler
        self._free = free

    def __getattr__(self, name: str) -> object:
        method = getattr(self._port, name)
        if name in self._free or not inspect.iscoroutinefunction(method):
            return method

        async def in_turn(*arguments: object, **named: object) -> object:
            return await self._scheduler.turn(lambda: method(*arguments, **named))

        return in_turn


class _Selector(selectors.DefaultSelector):
    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._scheduler = scheduler

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # The loop asks with a timeout other than 0 when no callback is ready to run.
        if (timeout is None or timeout > 0) and self._scheduler.open_next():
            return []
        return super().select(timeout)


def _loop(scheduler: Scheduler) -> asyncio.AbstractEventLoop:
    return asyncio.SelectorEventLoop(_Selector(scheduler))
