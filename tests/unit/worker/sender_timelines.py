"""The timelines of the sender, each a scene that any sender can be played in.

A scene asserts what the table says. The reference sender passes every one; a known-bad sender fails
the one that its docstring names.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from planned_faults import network_failure, refused
from virtual_clock import settled
from worker_bench import Bench, saved_event

from worker_under_test.application.sender import Sender
from worker_under_test.domain.errors import Kind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from worker_under_test.domain.event import Event


def reference_sender(bench: Bench) -> Sender:
    """Return the worker's own sender."""
    return Sender(bench.ports, bench.session, bench.quiet, bench.backoff)


@dataclass
class SenderRun:
    """A sender at work on doubles, with the times of its flushes.

    Attributes:
        bench: The doubles.
        make: Makes the sender.
    """

    bench: Bench
    make: Callable[[Bench], Sender]
    flushes: list[float] = field(default_factory=list)
    sender: Sender = field(init=False)
    task: asyncio.Task[None] = field(init=False)

    def __post_init__(self) -> None:
        reading = self.bench.store.unreported

        async def unreported() -> list[Event]:
            self.flushes.append(self.bench.clock.now_s)
            return await reading()

        self.bench.store.unreported = unreported  # type: ignore[method-assign]
        self.start()

    def start(self) -> None:
        """Begin a session's sender."""
        self.sender = self.make(self.bench)
        self.task = asyncio.create_task(self.sender.run())

    def fail(self, *fails: bool) -> None:
        """Plan which of the next flushes fail with a delivery failure."""
        self.bench.store.faults.plan(
            "unreported", *(network_failure() if fail else None for fail in fails)
        )

    async def until(self, time_s: float) -> None:
        """Let time pass."""
        await self.bench.clock.run_until(time_s)

    async def end(self) -> None:
        """End the session; raises what the sender raises."""
        self.task.cancel()
        await asyncio.wait((self.task,))
        if not self.task.cancelled():
            self.task.result()


async def t1(run: SenderRun) -> None:
    """Always ok: 0, 1, 2, 3 seconds, and nothing on the wire."""
    await run.until(3.5)
    assert run.flushes == [0, 1, 2, 3]
    assert run.bench.control.sent == []


async def t2(run: SenderRun) -> None:
    """Always retryable: longer each time, up to 30 s, each one observed, for ever."""
    run.bench.store.events.append(saved_event(1))
    run.bench.control.faults.plan("send_event", *(network_failure() for _ in range(1000)))
    await run.until(152)
    assert run.flushes == [0, 1, 3, 7, 15, 31, 61, 91, 121, 151]
    assert run.bench.observed.names == ["event delivery deferred"] * 10
    await run.until(151 + 30 * 900)
    assert run.flushes[-1] == 151 + 30 * 900
    assert {event.event_id for event in run.bench.control.sent} == {"event-1"}


async def t3(run: SenderRun) -> None:
    """Fail, fail, fail, ok, fail, ok, ok: one success resets the wait."""
    run.fail(True, True, True, False, True, False, False)
    await run.until(10.5)
    assert run.flushes == [0, 1, 3, 7, 8, 9, 10]


async def t4(run: SenderRun) -> None:
    """Fail at 0, wakes in the wait: nothing before 1, then one or two flushes at once."""
    run.fail(True)
    for time_s in (0.2, 0.3, 0.4):
        run.bench.clock.at(time_s, run.bench.quiet.event_saved)
    await run.until(3.5)
    assert run.flushes in ([0, 1, 2, 3], [0, 1, 1, 2, 3])


async def t5_wake(run: SenderRun) -> None:
    """Idle, a hundred wakes at 0.5: one flush at once, and the poll starts anew."""

    def wake() -> None:
        for _ in range(100):
            run.bench.quiet.event_saved()

    run.bench.clock.at(0.5, wake)
    await run.until(2.6)
    assert run.flushes == [0, 0.5, 1.5, 2.5]


async def t5_request(run: SenderRun) -> None:
    """Idle, a request at 0.5: answered with the result of the flush at 0.5."""
    await run.until(0.5)
    request = asyncio.create_task(run.sender.flush())
    await settled()
    assert request.done()
    request.result()
    await run.until(2.6)
    assert run.flushes == [0, 0.5, 1.5, 2.5]


async def t6(run: SenderRun) -> None:
    """Five failures, a request at 16: the flush at 31 answers it."""
    run.fail(True, True, True, True, True)
    await run.until(16)
    assert run.flushes == [0, 1, 3, 7, 15]
    request = asyncio.create_task(run.sender.flush())
    await run.until(30.9)
    assert not request.done()
    await run.until(33.5)
    request.result()
    assert run.flushes == [0, 1, 3, 7, 15, 31, 32, 33]


async def t7(run: SenderRun) -> None:
    """T2, but the session ends at 16: returns then without error, whatever is left to wait."""
    run.fail(*[True] * 10)
    await run.until(16)
    run.task.cancel()
    await settled()
    assert run.task.done()
    assert run.task.cancelled() or run.task.exception() is None
    assert run.bench.clock.now_s == 16
    assert run.flushes == [0, 1, 3, 7, 15]


async def t8(run: SenderRun) -> None:
    """Ok at 0, a local database error at 1: returned at 1, no wait."""
    run.bench.store.faults.plan("unreported", None, OSError("disk"))
    await run.until(100)
    assert run.flushes == [0, 1]
    assert run.bench.clock.slept == []
    assert _error(run) == "disk"


async def t9(run: SenderRun) -> None:
    """A retryable failure with a request: answered with the error at once, then the wait."""
    await settled()
    failure = network_failure()
    run.bench.store.faults.plan("unreported", failure)
    request = asyncio.create_task(run.sender.flush())
    await settled()
    assert request.exception() is failure
    assert run.flushes == [0, 0]
    await run.until(1.5)
    assert run.flushes == [0, 0, 1]


async def t10(run: SenderRun) -> None:
    """A refusal of the identity, wrapped as a delivery error: returned at once, the event stays."""
    run.bench.store.events.append(saved_event(1))
    run.bench.control.faults.plan("send_event", refused(Kind.UNAUTHENTICATED))
    await run.until(0.5)
    assert _error(run) == "refused"
    assert run.bench.clock.slept == []
    assert run.bench.store.reported == []


async def t11(run: SenderRun) -> None:
    """The session ends during a flush that fails with a local database error: no error."""
    began = asyncio.Event()

    async def fails_when_cancelled() -> list[Event]:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise OSError("disk") from None
        return []

    run.bench.store.unreported = fails_when_cancelled  # type: ignore[method-assign]
    await began.wait()
    await run.end()
    assert run.task.done()


async def t12(run: SenderRun) -> None:
    """The server accepts, the mark fails: returned; the next session sends the same event id."""
    bench = run.bench
    bench.store.events.append(saved_event(1))
    bench.store.faults.plan("mark_reported", OSError("disk"))
    await run.until(0.5)
    assert _error(run) == "disk"
    assert bench.clock.slept == []
    run.start()
    await settled()
    assert [event.event_id for event in bench.control.sent] == ["event-1", "event-1"]
    assert bench.store.reported == ["event-1"]


def _error(run: SenderRun) -> str:
    """Return the text of the error with which the sender ended; it must have ended."""
    assert run.task.done(), "the sender did not end"
    return str(run.task.exception())


TIMELINES: dict[str, Callable[[SenderRun], Awaitable[None]]] = {
    "T1": t1,
    "T2": t2,
    "T3": t3,
    "T4": t4,
    "T5 wake": t5_wake,
    "T5 request": t5_request,
    "T6": t6,
    "T7": t7,
    "T8": t8,
    "T9": t9,
    "T10": t10,
    "T11": t11,
    "T12": t12,
}


def play(name: str, make: Callable[[Bench], Sender] = reference_sender) -> None:
    """Play one timeline with a sender that was just started, and end it."""

    async def run() -> None:
        run = SenderRun(Bench(), make)
        try:
            await TIMELINES[name](run)
        finally:
            run.task.cancel()
            await asyncio.wait((run.task,))

    asyncio.run(run())
