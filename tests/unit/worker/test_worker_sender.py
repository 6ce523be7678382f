"""The sender on a clock that the test moves: timelines of the specification, section 5."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from worker_doubles import Bench, network_failure, refused, saved_event, settled

from worker_under_test.application.sender import Sender
from worker_under_test.domain.errors import Kind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Timeline:
    """A sender at work, with the times of its flushes."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.flushes: list[float] = []
        reading = bench.store.unreported

        async def unreported() -> list[object]:
            self.flushes.append(bench.clock.now_s)
            return list(await reading())

        bench.store.unreported = unreported  # type: ignore[method-assign,assignment]
        self.task = asyncio.create_task(
            Sender(bench.ports, bench.session, bench.quiet, bench.backoff).run()
        )


def on_timeline(scene: Callable[[Timeline], Awaitable[None]]) -> None:
    """Play a scene with a sender that was just started, and end it."""

    async def run() -> None:
        timeline = Timeline(Bench())
        try:
            await scene(timeline)
        finally:
            timeline.task.cancel()
            await asyncio.wait((timeline.task,))

    asyncio.run(run())


def test_t1_an_idle_sender_polls_each_second_without_a_request() -> None:
    """T1; OUT-03, OUT-05, OUT-36: 0, 1, 2, 3 seconds, and nothing on the wire."""

    async def scene(timeline: Timeline) -> None:
        await timeline.bench.clock.run_until(3.5)
        assert timeline.flushes == [0, 1, 2, 3]
        assert timeline.bench.control.sent == []

    on_timeline(scene)


def test_t2_retryable_failures_wait_longer_each_time() -> None:
    """T2; OUT-09..OUT-12, OUT-15, OUT-27: up to 30 s, for ever, each one observed."""

    async def scene(timeline: Timeline) -> None:
        bench = timeline.bench
        bench.store.events.append(saved_event(1))
        bench.control.faults.plan("send_event", *(network_failure() for _ in range(100)))
        await bench.clock.run_until(152)
        assert timeline.flushes == [0, 1, 3, 7, 15, 31, 61, 91, 121, 151]
        assert bench.observed.names == ["event delivery deferred"] * 10
        assert {event.event_id for event in bench.control.sent} == {"event-1"}

    on_timeline(scene)


def test_t3_one_success_resets_the_wait() -> None:
    """T3; OUT-12: fail, fail, fail, ok, fail, ok."""

    async def scene(timeline: Timeline) -> None:
        bench = timeline.bench
        fails = [True, True, True, False, True, False, False]
        bench.store.faults.plan(
            "unreported", *(network_failure() if fail else None for fail in fails)
        )
        await bench.clock.run_until(10.5)
        assert timeline.flushes == [0, 1, 3, 7, 8, 9, 10]

    on_timeline(scene)


def test_t4_a_wake_does_not_interrupt_the_back_off() -> None:
    """T4; OUT-13, OUT-14: nothing before 1, then one or two flushes at once."""

    async def scene(timeline: Timeline) -> None:
        bench = timeline.bench
        bench.store.faults.plan("unreported", network_failure())
        for time_s in (0.2, 0.3, 0.4):
            bench.clock.at(time_s, bench.quiet.event_saved)
        await bench.clock.run_until(3.5)
        assert timeline.flushes in ([0, 1, 2, 3], [0, 1, 1, 2, 3])

    on_timeline(scene)


def test_t5_a_wake_starts_a_flush_at_once() -> None:
    """T5; OUT-04, OUT-06: wakes are merged, and the poll starts anew."""

    async def scene(timeline: Timeline) -> None:
        bench = timeline.bench

        def wake() -> None:
            for _ in range(100):
                bench.quiet.event_saved()

        bench.clock.at(0.5, wake)
        await bench.clock.run_until(2.6)
        assert timeline.flushes == [0, 0.5, 1.5, 2.5]

    on_timeline(scene)


def test_t12_a_mark_that_fails_ends_the_sender_and_the_event_is_sent_again() -> None:
    """T8, T12; OUT-22, OUT-30, ATT-05, ATT-06, DEL-02: the same event id in the next session."""

    async def run() -> None:
        bench = Bench()
        bench.store.events.append(saved_event(1))
        bench.store.faults.plan("mark_reported", OSError("disk"))
        sender = Sender(bench.ports, bench.session, bench.quiet, bench.backoff)
        with pytest.raises(OSError, match="disk"):
            await sender.run()
        assert bench.clock.slept == []
        again = asyncio.create_task(sender.run())
        await settled()
        again.cancel()
        await asyncio.wait((again,))
        assert [event.event_id for event in bench.control.sent] == ["event-1", "event-1"]
        assert bench.store.reported == ["event-1"]

    asyncio.run(run())


@pytest.mark.parametrize("kind", [Kind.UNAUTHENTICATED, Kind.FORBIDDEN])
def test_t10_a_refused_identity_is_not_retried(kind: Kind) -> None:
    """T10; DEL-04, OUT-22: returned at once, the event stays."""

    async def run() -> None:
        bench = Bench()
        bench.store.events.append(saved_event(1))
        bench.control.faults.plan("send_event", refused(kind))
        with pytest.raises(Exception, match="refused"):
            await Sender(bench.ports, bench.session, bench.quiet, bench.backoff).run()
        assert bench.clock.slept == []
        assert bench.store.reported == []

    asyncio.run(run())


def test_what_was_delivered_before_a_failure_stays_marked() -> None:
    """OUT-29, OUT-31: five events, the third fails once; order of saving throughout."""

    async def scene(timeline: Timeline) -> None:
        bench = timeline.bench
        bench.store.events.extend(saved_event(number) for number in range(1, 6))
        bench.control.faults.plan("send_event", None, None, network_failure())
        await bench.clock.run_until(1.5)
        sent = [event.event_id[-1] for event in bench.control.sent]
        assert "".join(sent) == "123345"
        assert bench.store.reported == [f"event-{number}" for number in range(1, 6)]

    on_timeline(scene)


def test_an_event_is_marked_only_after_it_was_stored() -> None:
    """ATT-04: send, then mark."""

    async def scene(timeline: Timeline) -> None:
        bench = timeline.bench
        bench.store.events.append(saved_event(1))
        await settled()
        assert bench.log == ["unreported", "send_event event-1", "mark_reported event-1"]

    on_timeline(scene)
