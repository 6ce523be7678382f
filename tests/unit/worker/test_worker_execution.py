"""Execution: RUNNING, the capability, the result; and the reporter."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from planned_faults import network_failure
from worker_bench import Bench, attempt

from worker_under_test.application.execution import MAX_REASON_CHARS
from worker_under_test.domain.attempt import AttemptState
from worker_under_test.domain.event import AttemptEvent, EventKind
from worker_under_test.domain.progress import Progress

if TYPE_CHECKING:
    from worker_under_test.application.execution import Execution
    from worker_under_test.domain.command import Command
    from worker_under_test.ports.capability import ProgressReporter

HALF = Progress("s", "running", 50)


def bench_with_pending() -> tuple[Bench, Execution]:
    """Return a bench with one pending attempt, and the execution on it."""
    bench = Bench()
    bench.store.put(attempt(), AttemptState.PENDING)
    return bench, bench.execution()


@pytest.mark.requirement("INB-08", "ATT-03", "OUT-07")
def test_running_is_saved_first_and_the_sender_is_woken_last() -> None:
    """The steps have this order."""

    async def run() -> None:
        bench, execution = bench_with_pending()
        await execution.run(attempt(), acknowledged=True)
        assert bench.log == ["start c1", "execute c1", "finish c1"]
        assert bench.store.states["attempt-c1"] is AttemptState.SUCCEEDED
        assert bench.store.acknowledged == ["attempt-c1"]
        assert bench.quiet.outbox_wake.is_set()

    asyncio.run(run())


@pytest.mark.requirement("ATT-07", "ATT-08", "CAP-09")
@pytest.mark.parametrize("error", [ValueError("bad \ud800 input"), OSError("x" * 5000), None])
def test_a_failure_is_a_result(error: Exception | None) -> None:
    """An exception, and no event at all, end in one failure event."""

    async def run() -> None:
        bench, execution = bench_with_pending()

        async def work(command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
            if error is not None:
                raise error
            return None

        bench.capabilities.work = work
        await execution.run(attempt())
        (event,) = bench.store.events
        assert event.kind is EventKind.FAILED
        reason = event.body["reason"]
        assert isinstance(reason, str)
        assert 0 < len(reason.encode()) <= MAX_REASON_CHARS + 10
        assert bench.store.states["attempt-c1"] is AttemptState.FAILED

    asyncio.run(run())


@pytest.mark.requirement("CAP-03", "CAP-06", "CAP-07")
def test_a_report_is_a_checkpoint_and_then_a_heartbeat() -> None:
    """The two come in this order, with numbers that go on after a restart."""

    async def run() -> None:
        bench, execution = bench_with_pending()

        async def work(command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
            await reporter(HALF, {"part": 1})
            await reporter(HALF, {"part": 2})
            return AttemptEvent(EventKind.SUCCEEDED, {})

        bench.capabilities.work = work
        await execution.run(attempt())
        assert bench.log[2:6] == ["save_checkpoint c1", "heartbeat c1"] * 2
        assert bench.store.checkpoints["attempt-c1"].seq == 2

        bench.store.states["attempt-c1"] = AttemptState.RECOVERING
        await execution.run(attempt())
        assert bench.store.checkpoints["attempt-c1"].seq == 4

    asyncio.run(run())


@pytest.mark.requirement("CAP-07", "SES-05")
def test_a_lost_heartbeat_is_not_fatal() -> None:
    """The work goes on, and the loss is visible."""

    async def run() -> None:
        bench, execution = bench_with_pending()
        bench.control.faults.plan("heartbeat", network_failure())

        async def work(command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
            await reporter(HALF)
            return AttemptEvent(EventKind.SUCCEEDED, {})

        bench.capabilities.work = work
        await execution.run(attempt())
        assert bench.observed.names == ["heartbeat lost"]
        assert bench.store.states["attempt-c1"] is AttemptState.SUCCEEDED

    asyncio.run(run())


@pytest.mark.requirement("CAP-07", "OUT-22")
def test_a_store_that_fails_in_a_report_ends_no_attempt() -> None:
    """The error reaches the capability and, even if that hides it, the worker."""

    async def run() -> None:
        bench, execution = bench_with_pending()
        bench.store.faults.plan("save_checkpoint", OSError("disk"))
        seen: list[Exception] = []

        async def work(command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
            try:
                await reporter(HALF)
            except OSError as error:
                seen.append(error)
            return AttemptEvent(EventKind.SUCCEEDED, {})

        bench.capabilities.work = work
        with pytest.raises(OSError, match="disk"):
            await execution.run(attempt())
        assert len(seen) == 1
        assert "heartbeat c1" not in bench.log
        assert bench.store.states["attempt-c1"] is AttemptState.RUNNING

    asyncio.run(run())


@pytest.mark.requirement("CAP-11")
def test_a_report_after_the_end_is_ignored() -> None:
    """Nothing is saved, and the attempt is not opened again."""

    async def run() -> None:
        bench, execution = bench_with_pending()
        kept: list[ProgressReporter] = []

        async def work(command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
            kept.append(reporter)
            return AttemptEvent(EventKind.SUCCEEDED, {})

        bench.capabilities.work = work
        await execution.run(attempt())
        await kept[0](HALF)
        assert bench.store.checkpoints == {}
        assert bench.observed.names == ["late report ignored"]

    asyncio.run(run())


@pytest.mark.requirement("ATT-08", "CAP-05")
def test_evidence_that_is_not_json_is_the_capabilitys_failure() -> None:
    """The reporter refuses it, nothing is saved, and it is not a failure of the store."""

    async def run() -> None:
        bench, execution = bench_with_pending()

        async def work(command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
            await reporter(HALF, {"offset": float("nan")})
            return AttemptEvent(EventKind.SUCCEEDED, {})

        bench.capabilities.work = work
        await execution.run(attempt())
        assert bench.store.checkpoints == {}
        assert bench.store.states["attempt-c1"] is AttemptState.FAILED

    asyncio.run(run())


@pytest.mark.requirement("CAP-02")
def test_a_capability_that_is_not_installed_is_never_running() -> None:
    """It fails visibly, and leaves nothing that looks like interrupted work."""

    async def run() -> None:
        bench = Bench()
        bench.store.put(attempt("c1", "other"), AttemptState.PENDING)
        await bench.execution().run(attempt("c1", "other"))
        assert bench.log == ["finish c1"]
        (event,) = bench.store.events
        assert event.kind is EventKind.FAILED
        assert event.body == {"reason": "capability 'other' version 1 is not installed"}

    asyncio.run(run())
