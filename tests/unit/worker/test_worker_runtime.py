"""The life of the worker on doubles."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from living import GOOD, PORTS, alive, delivery, runtime
from planned_faults import network_failure, refused
from virtual_clock import settled
from worker_bench import Bench, attempt, saved_event

import harness.points
from worker_under_test.domain.attempt import AttemptState
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.registration import NodeInventory, Registration

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def idle_hits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Count how often the worker became idle."""
    hits: list[str] = []

    def hook(label: str, context: dict[str, object]) -> None:
        if label == "worker.idle.before":
            hits.append(label)

    monkeypatch.setattr(harness.points, "_hook", hook)
    return hits


@pytest.mark.requirement("REG-01", "REG-04", "REG-08")
def test_everything_wrong_at_once_is_an_identity_error() -> None:
    """The checks come in order, and no port is touched."""
    bench = Bench()
    with pytest.raises(DomainError, match="缺少实例"):
        runtime(bench, Registration("", "", "", NodeInventory(0)), " ".join(PORTS))
    assert bench.log == []


@pytest.mark.requirement("REG-03")
@pytest.mark.parametrize("missing", PORTS)
def test_each_port_is_required(missing: str) -> None:
    """A missing port is a plain error without a kind."""
    with pytest.raises(ValueError, match=r"^control plane, command stream, local store, capabil"):
        runtime(Bench(), GOOD, missing)


@pytest.mark.requirement("ATT-11", "SES-01")
def test_recovery_is_complete_before_the_first_command_is_consumed() -> None:
    """The worker registers, scans, and only then opens the stream."""

    async def run() -> None:
        bench = Bench()
        bench.store.put(attempt("c1"), AttemptState.RUNNING)
        async with alive(bench):
            log = bench.log
            assert log.index("register i") < log.index("decide c1") < log.index("start c1")
            assert log.index("decide c1") < log.index("open_stream session-1")
        assert bench.store.states["attempt-c1"] is AttemptState.SUCCEEDED

    asyncio.run(run())


@pytest.mark.requirement("REC-15", "INV-1", "INV-10")
def test_a_capability_that_is_gone_leaves_a_reported_unknown() -> None:
    """The attempt is not executed but UNKNOWN, and its event is sent."""

    async def run() -> None:
        bench = Bench()
        bench.store.put(attempt("c1", "gone"), AttemptState.RUNNING)
        async with alive(bench):
            assert [event.kind.value for event in bench.control.sent] == ["unknown"]
        assert "execute c1" not in bench.log
        assert bench.store.states["attempt-c1"] is AttemptState.UNKNOWN

    asyncio.run(run())


@pytest.mark.requirement("OUT-36")
@pytest.mark.parametrize("backlog", [0, 1, 3])
def test_idle_is_said_once_for_each_burst(idle_hits: list[str], backlog: int) -> None:
    """It is said once after the start, even without work, and once after a later command."""

    async def run() -> None:
        bench = Bench()
        bench.stream.backlogs.append([delivery(f"c{number}") for number in range(backlog)])
        async with alive(bench):
            assert len(idle_hits) == 1
            assert len(bench.store.reported) == backlog
            await bench.clock.run_until(5)
            assert len(idle_hits) == 1
            bench.stream.live.put_nowait(delivery("live"))
            await settled()
            assert len(idle_hits) == 2
            bench.stream.live.put_nowait(delivery("live"))
            await settled()
            assert len(idle_hits) == 3

    asyncio.run(run())


@pytest.mark.requirement("OUT-28")
def test_a_worker_with_an_unsent_event_is_not_idle(idle_hits: list[str]) -> None:
    """A deferred flush keeps the worker busy until it succeeds."""

    async def run() -> None:
        bench = Bench()
        bench.store.events.append(saved_event(1))
        bench.control.faults.plan("send_event", network_failure())
        async with alive(bench):
            assert idle_hits == []
            await bench.clock.run_until(1)
            assert len(idle_hits) == 1

    asyncio.run(run())


@pytest.mark.requirement("SES-01", "SES-02", "INB-15", "CAP-08")
def test_a_cut_stream_gives_a_new_session_and_running_attempts_go_on() -> None:
    """The attempt of before ends under the new session."""

    async def run() -> None:
        bench = Bench()
        go_on = asyncio.Event()
        done = bench.capabilities.work

        async def work(*given: object) -> object:
            await go_on.wait()
            return await done(*given)  # type: ignore[arg-type]

        bench.capabilities.work = work  # type: ignore[assignment]
        bench.stream.backlogs.extend([[delivery("c1")], [delivery("c2")]])
        async with alive(bench):
            bench.stream.live.put_nowait(network_failure())
            await bench.clock.run_until(1)
            assert "open_stream session-2" in bench.log
            go_on.set()
            await settled()
            assert [event.command_id for event in bench.control.sent] == ["c1", "c2"]
            assert bench.control.sent_under == ["session-2", "session-2"]
        assert bench.log.count("execute c1") == 1

    asyncio.run(run())


@pytest.mark.requirement("DEL-11", "SES-02")
def test_a_refused_identity_is_renewed_and_not_hammered() -> None:
    """Three sessions get a 401, each after a longer wait; then everything is delivered."""

    async def run() -> None:
        bench = Bench()
        bench.store.events.append(saved_event(1))
        bench.control.faults.plan("send_event", *(refused(Kind.UNAUTHENTICATED) for _ in range(3)))
        async with alive(bench):
            await bench.clock.run_until(8)
            assert bench.clock.slept == [1, 2, 4]
            assert bench.control.sessions == 4
            assert bench.store.reported == ["event-1"]

    asyncio.run(run())


@pytest.mark.requirement("SES-01", "OUT-10")
def test_a_registration_without_a_reply_is_tried_again() -> None:
    """A lost reply is waited for like a failed sending, and then tried again."""

    async def run() -> None:
        bench = Bench()
        bench.control.faults.plan("register", network_failure(), network_failure())
        async with alive(bench):
            await bench.clock.run_until(3)
            assert bench.clock.slept == [1, 2]
            assert bench.control.sessions == 1

    asyncio.run(run())


@pytest.mark.requirement("INV-16", "OUT-22", "INB-07")
@pytest.mark.parametrize(
    ("method", "make"),
    [
        ("unreported", lambda: OSError("disk")),
        ("accept", lambda: OSError("disk")),
        ("finish", lambda: OSError("disk")),
        ("unfinished", lambda: OSError("disk")),
    ],
)
def test_a_local_failure_ends_the_worker_with_that_error(
    method: str, make: Callable[[], Exception]
) -> None:
    """It ends with one plain error, without a retry, and everything is closed."""

    async def run() -> None:
        bench = Bench()
        bench.stream.backlogs.append([delivery("c1"), delivery("c2")])
        bench.store.faults.plan(method, make())
        with pytest.raises(OSError, match="disk"):
            await runtime(bench).run()
        assert bench.clock.slept == []
        assert bench.log[-1] == "close"

    asyncio.run(run())


@pytest.mark.requirement("INB-05", "INB-11")
def test_a_stop_leaves_the_attempt_for_the_next_start() -> None:
    """What was interrupted is still RUNNING, and the next life ends it."""

    async def run() -> None:
        bench = Bench()
        done = bench.capabilities.work

        async def never(*given: object) -> object:
            await asyncio.Event().wait()
            return None

        bench.capabilities.work = never  # type: ignore[assignment]
        bench.stream.backlogs.append([delivery("c1")])
        async with alive(bench):
            pass
        assert list(bench.store.states.values()) == [AttemptState.RUNNING]
        bench.capabilities.work = done
        async with alive(bench):
            pass
        assert list(bench.store.states.values()) == [AttemptState.SUCCEEDED]
        assert len(bench.control.sent) == 1

    asyncio.run(run())


@pytest.mark.requirement("REG-06", "REG-07", "REG-09", "SES-03")
def test_a_new_runtime_has_the_defaults_of_the_seed() -> None:
    """Nothing is running, it is not draining, and the first wait is a second."""

    async def run() -> None:
        bench = Bench()
        made = runtime(bench)
        assert len(made._running) == 0
        assert not made._admission.room.is_set()
        assert made._admission.refusal(attempt().command, 0) is None
        assert not made._quiet.outbox_wake.is_set()
        assert bench.log == []
        bench.control.faults.plan("register", network_failure())
        async with alive(bench):
            assert bench.clock.slept == [1]

    asyncio.run(run())


@pytest.mark.requirement("SES-05", "CAP-07")
def test_all_heartbeats_lost_the_result_is_right() -> None:
    """Heartbeats are evidence of nothing, so the result is right without them."""

    async def run() -> None:
        bench = Bench()
        bench.control.faults.plan("heartbeat", *(network_failure() for _ in range(10)))
        bench.stream.backlogs.append([delivery("c1")])
        async with alive(bench):
            assert [event.kind.value for event in bench.control.sent] == ["succeeded"]

    asyncio.run(run())
