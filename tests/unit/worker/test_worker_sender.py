"""What the sender delivers, in which order, and what it marks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from planned_faults import network_failure, refused
from sender_timelines import SenderRun, reference_sender
from virtual_clock import settled
from worker_bench import Bench, saved_event

from worker_under_test.application.sender import Sender
from worker_under_test.domain.errors import Kind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def on_timeline(scene: Callable[[SenderRun], Awaitable[None]]) -> None:
    """Play a scene with a sender that was just started, and end it."""

    async def run() -> None:
        timeline = SenderRun(Bench(), reference_sender)
        try:
            await scene(timeline)
        finally:
            timeline.task.cancel()
            await asyncio.wait((timeline.task,))

    asyncio.run(run())


@pytest.mark.requirement("DEL-04", "OUT-22")
@pytest.mark.parametrize("kind", [Kind.UNAUTHENTICATED, Kind.FORBIDDEN])
def test_t10_a_refused_identity_is_not_retried(kind: Kind) -> None:
    """The refusal is returned at once, and the event stays."""

    async def run() -> None:
        bench = Bench()
        bench.store.events.append(saved_event(1))
        bench.control.faults.plan("send_event", refused(kind))
        with pytest.raises(Exception, match="refused"):
            await Sender(bench.ports, bench.session, bench.quiet, bench.backoff).run()
        assert bench.clock.slept == []
        assert bench.store.reported == []

    asyncio.run(run())


@pytest.mark.requirement("OUT-29", "OUT-31")
def test_what_was_delivered_before_a_failure_stays_marked() -> None:
    """Of five events the third fails once, and the order of saving is kept."""

    async def scene(timeline: SenderRun) -> None:
        bench = timeline.bench
        bench.store.events.extend(saved_event(number) for number in range(1, 6))
        bench.control.faults.plan("send_event", None, None, network_failure())
        await bench.clock.run_until(1.5)
        sent = [event.event_id[-1] for event in bench.control.sent]
        assert "".join(sent) == "123345"
        assert bench.store.reported == [f"event-{number}" for number in range(1, 6)]

    on_timeline(scene)


@pytest.mark.requirement("ATT-04")
def test_an_event_is_marked_only_after_it_was_stored() -> None:
    """An event is sent first and marked afterwards."""

    async def scene(timeline: SenderRun) -> None:
        bench = timeline.bench
        bench.store.events.append(saved_event(1))
        await settled()
        assert bench.log == ["unreported", "send_event event-1", "mark_reported event-1"]

    on_timeline(scene)
