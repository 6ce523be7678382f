"""Timelines T1 to T12, played by the reference sender and by known-bad ones."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from known_bad_senders import (
    BlockingProducer,
    RetriesEverything,
    RetriesRefusals,
    interruptible_sender,
)
from planned_faults import refused
from sender_timelines import TIMELINES, SenderRun, play, reference_sender
from virtual_clock import settled
from worker_bench import Bench, attempt, saved_event

from worker_under_test.application.execution import Execution
from worker_under_test.domain.attempt import AttemptState
from worker_under_test.domain.errors import DomainError, Kind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from worker_under_test.application.sender import Sender


@pytest.mark.requirement("OUT-01", "OUT-03..OUT-18", "OUT-22..OUT-27", "OUT-30", "OUT-34..OUT-36")
@pytest.mark.requirement("DEL-02", "DEL-04")
@pytest.mark.parametrize("name", TIMELINES)
def test_the_sender_keeps_to_the_timeline(name: str) -> None:
    """The sender flushes, waits and answers when the timeline says."""
    play(name)


def retries_everything(bench: Bench) -> Sender:
    """Return the sender that retries every error."""
    return RetriesEverything(bench.ports, bench.session, bench.quiet, bench.backoff)


def retries_refusals(bench: Bench) -> Sender:
    """Return the sender that retries a 401."""
    return RetriesRefusals(bench.ports, bench.session, bench.quiet, bench.backoff)


@pytest.mark.requirement("M-22", "M-23", "M-31", "INV-16")
@pytest.mark.parametrize(
    ("caught_by", "make"),
    [("T4", interruptible_sender), ("T8", retries_everything), ("T10", retries_refusals)],
)
def test_a_known_bad_sender_is_caught(caught_by: str, make: Callable[[Bench], Sender]) -> None:
    """Each fails the timeline that its docstring names."""
    with pytest.raises(AssertionError):
        play(caught_by, make)


def on_stage(scene: Callable[[SenderRun], Awaitable[None]]) -> None:
    """Play a scene with the reference sender."""

    async def run() -> None:
        run = SenderRun(Bench(), reference_sender)
        try:
            await scene(run)
        finally:
            run.task.cancel()
            await asyncio.wait((run.task,))

    asyncio.run(run())


def check_producers_go_on(execution_type: type[Execution]) -> None:
    """See that attempts end while the sender is in its back-off, and wakes are merged."""

    async def scene(run: SenderRun) -> None:
        bench = run.bench
        run.fail(True)
        await settled()
        execution = execution_type(
            bench.ports, bench.session, bench.quiet, bench.running, bench.admission
        )
        given = [attempt(f"c{number}") for number in range(3)]
        for each in given:
            bench.store.put(each, AttemptState.PENDING)
        producers = [asyncio.create_task(execution.run(each)) for each in given]
        await run.until(0.9)
        try:
            assert all(task.done() for task in producers), "a producer waits for the sender"
            await run.until(1.1)
            assert len(bench.store.reported) == len(given)
        finally:
            for task in producers:
                task.cancel()
            await asyncio.wait(producers)

    on_stage(scene)


@pytest.mark.requirement("OUT-06", "OUT-07", "OUT-28", "ATT-03")
def test_a_producer_never_waits_for_the_sender() -> None:
    """Three attempts end during the back-off, and all are sent after it."""
    check_producers_go_on(Execution)


@pytest.mark.requirement("M-20", "INV-9")
def test_a_producer_that_waits_is_caught() -> None:
    """An attempt that stands still until its wake is taken."""
    with pytest.raises(AssertionError, match="a producer waits"):
        check_producers_go_on(BlockingProducer)


@pytest.mark.requirement("OUT-16", "OUT-21")
def test_ten_requests_get_ten_answers_and_each_sees_what_was_saved_before() -> None:
    """An event saved before each request is sent when it is answered."""

    async def scene(run: SenderRun) -> None:
        await settled()
        answered: list[list[str]] = []

        async def ask(number: int) -> None:
            run.bench.store.events.append(saved_event(number))
            await run.sender.flush()
            assert f"event-{number}" in run.bench.store.reported
            answered.append(list(run.bench.store.reported))

        await asyncio.gather(*(ask(number) for number in range(10)))
        assert len(answered) == 10

    on_stage(scene)


@pytest.mark.requirement("OUT-19")
def test_a_request_does_not_outlive_the_sender() -> None:
    """A request in the wait is told of the end, and one that comes later at once."""

    async def scene(run: SenderRun) -> None:
        run.fail(True)
        await settled()
        request = asyncio.create_task(run.sender.flush())
        await settled()
        assert not request.done()
        await asyncio.gather(run.end(), return_exceptions=True)
        for late in (request, asyncio.create_task(run.sender.flush())):
            with pytest.raises(DomainError, match="session is over") as refusal:
                await late
            assert refusal.value.kind is Kind.CONFLICT

    on_stage(scene)


@pytest.mark.requirement("OUT-20")
def test_a_requester_that_gave_up_does_not_hold_the_sender_up() -> None:
    """One is cancelled before its answer; the others get theirs, and the polls go on."""

    async def scene(run: SenderRun) -> None:
        run.fail(True)
        await settled()
        gone, kept = (asyncio.create_task(run.sender.flush()) for _ in range(2))
        await settled()
        gone.cancel()
        await run.until(2.5)
        assert gone.cancelled()
        kept.result()
        assert run.flushes == [0, 1, 2]

    on_stage(scene)


@pytest.mark.requirement("OUT-23")
@pytest.mark.parametrize("time_s", [0.2, 0.5, 0.9])
def test_the_end_of_the_session_while_idle_is_no_error(time_s: float) -> None:
    """Nothing is raised, nothing more is flushed."""

    async def scene(run: SenderRun) -> None:
        await run.until(time_s)
        await run.end()
        await run.until(5)
        assert run.flushes == [0]

    on_stage(scene)


@pytest.mark.requirement("OUT-02", "OUT-08", "OUT-26")
def test_an_event_saved_during_a_flush_has_a_flush_of_its_own() -> None:
    """The wake is taken before the flush reads, so none is lost."""

    async def scene(run: SenderRun) -> None:
        bench = run.bench
        await settled()
        send = bench.control.send_event

        async def saves_one_more(*given: object) -> None:
            await send(*given)  # type: ignore[arg-type]
            if len(bench.store.events) == 1:
                bench.store.events.append(saved_event(2))
                bench.quiet.event_saved()

        bench.control.send_event = saves_one_more  # type: ignore[method-assign,assignment]
        bench.store.events.append(saved_event(1))
        bench.quiet.event_saved()
        await settled()
        assert bench.store.reported == ["event-1", "event-2"]
        assert bench.clock.now_s == 0

    on_stage(scene)


@pytest.mark.requirement("OUT-02", "ATT-03")
def test_events_are_sent_without_any_wake() -> None:
    """With every wake dropped, the poll finds what was saved."""

    async def scene(run: SenderRun) -> None:
        await settled()
        run.bench.store.events.append(saved_event(1))
        await run.until(1.1)
        assert run.bench.store.reported == ["event-1"]

    on_stage(scene)


@pytest.mark.requirement("DEL-01", "DEL-06", "OUT-33", "AMB-15")
@pytest.mark.parametrize("kind", [Kind.INVALID, Kind.NOT_FOUND, Kind.CONFLICT, Kind.INTERNAL])
def test_a_refusal_that_is_not_of_the_identity_is_tried_again_and_seen(kind: Kind) -> None:
    """It is tried for ever, visibly, and the event is not dropped."""

    async def scene(run: SenderRun) -> None:
        run.bench.store.events.append(saved_event(1))
        run.bench.control.faults.plan("send_event", refused(kind), refused(kind))
        await run.until(3.5)
        assert run.flushes == [0, 1, 3]
        assert run.bench.observed.names == ["event delivery deferred"] * 2
        assert run.bench.store.reported == ["event-1"]

    on_stage(scene)


@pytest.mark.requirement("DEL-03", "DEL-05", "DEL-07", "OUT-22", "INV-16")
@pytest.mark.parametrize("place", ["unreported", "mark_reported", "send_event"])
def test_an_error_without_the_mark_is_never_tried_again(place: str) -> None:
    """A plain timeout is not tried again, at each of the three places."""

    async def scene(run: SenderRun) -> None:
        bench = run.bench
        faults = bench.control.faults if place == "send_event" else bench.store.faults
        faults.plan(place, TimeoutError("plain"))
        bench.store.events.append(saved_event(1))
        await run.until(100)
        assert run.task.done()
        assert isinstance(run.task.exception(), TimeoutError)
        assert bench.clock.slept == []
        assert bench.store.reported == []

    on_stage(scene)
