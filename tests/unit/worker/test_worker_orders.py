"""Orders to a living worker: cancel, drain, capacity, withdraw."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest
from living import alive, delivery
from planned_faults import network_failure
from virtual_clock import settled
from worker_bench import Bench, attempt, command, saved_event

from worker_under_test.application.running import Running
from worker_under_test.domain.attempt import AttemptState
from worker_under_test.domain.command import Command
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.event import AttemptEvent, EventKind
from worker_under_test.domain.order import Cancel, Directives, Drain, Limit, Offer, order_of
from worker_under_test.domain.recovery import (
    Decision,
    Proposal,
    RecoveryPolicy,
    decide,
    end_of_cancel,
)
from worker_under_test.domain.registration import NodeInventory

if TYPE_CHECKING:
    from worker_under_test.domain.json_value import JsonValue
    from worker_under_test.domain.order import Order
    from worker_under_test.ports.capability import ProgressReporter


class Gate:
    """Work that waits until the test lets it go on."""

    def __init__(self, bench: Bench) -> None:
        self.open = asyncio.Event()
        self.entered: list[str] = []
        bench.capabilities.work = self._work

    async def _work(self, given: Command, reporter: ProgressReporter) -> AttemptEvent | None:
        self.entered.append(given.command_id)
        await self.open.wait()
        return AttemptEvent(EventKind.SUCCEEDED, {})


def ends(bench: Bench) -> dict[str, str]:
    """Return how each command ended, as it was reported."""
    return {event.command_id: event.kind.value for event in bench.control.sent}


def found(bench: Bench, command_id: str) -> JsonValue:
    """Return what a cancel found."""
    return next(e for e in bench.control.sent if e.command_id == command_id).body["found"]


@pytest.mark.requirement("DRN-01", "AMB-14")
@pytest.mark.parametrize(
    ("name", "payload", "order"),
    [
        ("cancel", {"command_id": "c1"}, Cancel("c1")),
        ("drain", {}, Drain(draining=True)),
        ("undrain", {}, Drain(draining=False)),
        ("capacity", {"attempts": 0}, Limit(0)),
        ("withdraw", {"capability": "work", "version": 2}, Offer("work", 2, offered=False)),
        ("offer", {"capability": "work", "version": 2}, Offer("work", 2, offered=True)),
        ("cleanup", {}, None),
    ],
)
def test_an_order_is_a_command_with_a_name_of_its_own(
    name: str, payload: dict[str, JsonValue], order: Order | None
) -> None:
    """An order is read from capability and payload; a clean-up is work."""
    assert order_of(Command("o", f"control.{name}", 1, payload)) == order


@pytest.mark.requirement("INB-13")
@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("cancel", {}),
        ("cancel", {"command_id": " "}),
        ("capacity", {"attempts": -1}),
        ("capacity", {"attempts": True}),
        ("withdraw", {"capability": "work", "version": 0}),
        ("explode", {}),
    ],
)
def test_a_malformed_order_is_refused(name: str, payload: dict[str, JsonValue]) -> None:
    """It gets no row, no acknowledgement and no loop, and the worker goes on."""

    async def run() -> None:
        bench = Bench()
        bench.stream.backlogs.append([delivery("o", f"control.{name}", **payload)])
        async with alive(bench):
            assert bench.store.commands == {}
            assert bench.observed.names == ["command refused"]
            assert "acknowledge o" not in bench.log

    asyncio.run(run())


@pytest.mark.requirement("ADM-04", "ADM-06", "CAP-10")
def test_a_running_attempt_is_stopped_by_a_cancel() -> None:
    """The cancel is saved, then the attempt stopped; a repeated cancel is only confirmed."""

    async def run() -> None:
        bench = Bench()
        gate = Gate(bench)
        bench.stream.backlogs.append([delivery("c1"), delivery("c2")])
        async with alive(bench):
            assert gate.entered == ["c1", "c2"]
            cancel = delivery("x", "control.cancel", command_id="c1")
            for _ in range(2):
                bench.stream.live.put_nowait(cancel)
            await settled()
            assert found(bench, "x") == "RUNNING"
            assert ends(bench) == {"x": "succeeded", "c1": "cancelled"}
            assert bench.log.count("acknowledge x") == 2
            gate.open.set()
            await settled()
            assert ends(bench)["c2"] == "succeeded"

    asyncio.run(run())


@pytest.mark.requirement("ADM-07")
def test_a_cancel_that_comes_before_the_start_prevents_it() -> None:
    """If the cancel is saved before RUNNING, the capability is never called."""

    async def run() -> None:
        bench = Bench()
        gate = Gate(bench)
        may_ack = asyncio.Event()
        acknowledge = bench.control.acknowledge

        async def slow(*given: object) -> None:
            if given[1] == "c1":
                await may_ack.wait()
            await acknowledge(*given)  # type: ignore[arg-type]

        bench.control.acknowledge = slow  # type: ignore[method-assign,assignment]
        bench.stream.backlogs.append(
            [delivery("c1"), delivery("x", "control.cancel", command_id="c1")]
        )
        async with alive(bench):
            assert found(bench, "x") == "PENDING"
            may_ack.set()
            await settled()
            assert gate.entered == []
            assert ends(bench)["c1"] == "cancelled"

    asyncio.run(run())


@pytest.mark.requirement("ADM-09", "ATT-10")
@pytest.mark.parametrize(
    ("state", "told"),
    [
        (AttemptState.SUCCEEDED, "SUCCEEDED"),
        (AttemptState.FAILED, "FAILED"),
        (AttemptState.UNKNOWN, "UNKNOWN"),
        (None, "none"),
    ],
)
def test_a_cancel_of_what_is_over_or_not_known_changes_nothing(
    state: AttemptState | None, told: str
) -> None:
    """Such a cancel is answered, also after a restart, and changes nothing."""

    async def run() -> None:
        bench = Bench()
        if state is not None:
            bench.store.put(attempt("c1"), state)
        bench.stream.backlogs.append([delivery("x", "control.cancel", command_id="c1")])
        async with alive(bench):
            assert found(bench, "x") == told
        assert bench.store.cancels == set()
        assert bench.store.states.get("attempt-c1") == state

    asyncio.run(run())


@pytest.mark.requirement("ADM-08", "ADM-10", "CP-K5")
@pytest.mark.parametrize(
    ("state", "policy", "decision"),
    [
        (AttemptState.PENDING, None, Decision.CANCEL),
        (AttemptState.RUNNING, RecoveryPolicy.RECOMPUTE, Decision.CANCEL),
        (AttemptState.RECOVERING, RecoveryPolicy.RESUME, Decision.CANCEL),
        (AttemptState.RUNNING, None, Decision.UNKNOWN),
    ],
)
def test_a_restart_honours_a_saved_cancel(
    state: AttemptState, policy: RecoveryPolicy | None, decision: Decision
) -> None:
    """It never calls cancelled what may have had an effect outside."""
    propose = partial(Proposal, Decision.RESUME, "")
    assert decide(state, policy, propose, cancelled=True).decision is decision
    assert end_of_cancel(None) is EventKind.UNKNOWN


@pytest.mark.requirement("ADM-08", "CP-K5")
def test_a_cancel_that_was_saved_and_not_applied_is_applied_by_the_next_life() -> None:
    """The recovery scan finds it; the command is never executed, and reported."""

    async def run() -> None:
        bench = Bench()
        bench.store.put(attempt("c1"), AttemptState.PENDING)
        bench.store.put(attempt("c2"), AttemptState.RUNNING)
        bench.store.cancels = {"c1", "c2"}
        async with alive(bench):
            assert ends(bench) == {"c1": "cancelled", "c2": "cancelled"}
        assert not [line for line in bench.log if line.startswith("execute")]

    asyncio.run(run())


@pytest.mark.requirement("ADM-04", "ADM-05")
def test_the_running_set_is_of_this_process_only() -> None:
    """Nothing starts twice or leaks, and absence from the set stops nothing."""
    running = Running()
    with running.entered("c1") as handle:
        with pytest.raises(DomainError) as refusal, running.entered("c1"):
            pass
        assert refusal.value.kind is Kind.CONFLICT
        running.cancel("c1")
        running.cancel("of another life")
        assert handle.cancelled
        assert len(running) == 1
    assert len(running) == 0


@pytest.mark.requirement("DRN-03..DRN-05", "INV-14")
def test_a_draining_worker_finishes_reports_and_admits_nothing() -> None:
    """Running work ends, the outbox is sent, a repeat is confirmed."""

    async def run() -> None:
        bench = Bench()
        gate = Gate(bench)
        bench.stream.backlogs.append([delivery("c1"), delivery("d", "control.drain")])
        async with alive(bench):
            for again in ("c2", "c1"):
                bench.stream.live.put_nowait(delivery(again))
            await settled()
            assert bench.control.refused == [("c2", "draining")]
            assert bench.log.count("acknowledge c1") == 2
            gate.open.set()
            await settled()
            assert ends(bench) == {"d": "succeeded", "c1": "succeeded"}
            assert set(bench.store.commands) == {"c1", "d"}

    asyncio.run(run())


@pytest.mark.requirement("DRN-01", "DRN-03", "DRN-06", "CP-K3")
def test_draining_ends_by_an_order_only() -> None:
    """A restart, a recovery and a new session do not end a drain."""

    async def run() -> None:
        bench = Bench()
        bench.stream.backlogs.append([delivery("d", "control.drain")])
        async with alive(bench):
            pass
        bench.store.put(attempt("old"), AttemptState.RUNNING)
        async with alive(bench):
            assert bench.store.states["attempt-old"] is AttemptState.SUCCEEDED
            bench.stream.live.put_nowait(network_failure())
            await bench.clock.run_until(1)
            assert bench.control.sessions == 3
            bench.stream.live.put_nowait(delivery("c1"))
            await settled()
            assert bench.control.refused == [("c1", "draining")]
            bench.stream.held = [delivery("c1")]
            bench.stream.live.put_nowait(delivery("u", "control.undrain"))
            await settled()
            assert ends(bench)["c1"] == "succeeded"

    asyncio.run(run())


@pytest.mark.requirement("DRN-02", "CP-K1")
def test_a_drain_that_could_not_be_saved_is_neither_confirmed_nor_in_force() -> None:
    """The store's error ends the worker, and the next life is not draining."""

    async def run() -> None:
        bench = Bench()
        bench.store.faults.plan("accept_order", OSError("disk"))
        bench.stream.backlogs.append([delivery("d", "control.drain")])
        with pytest.raises(OSError, match="disk"):
            async with alive(bench) as life:
                await life
        assert "acknowledge d" not in bench.log
        assert bench.store.orders == Directives()

    asyncio.run(run())


@pytest.mark.requirement("DRN-08", "DRN-11", "REC-18")
def test_a_smaller_capacity_stops_nothing_and_keeps_new_work_out() -> None:
    """Going from 4 to 1 with three attempts open ends none and drops none."""

    async def run() -> None:
        bench = Bench()
        gate = Gate(bench)
        bench.stream.backlogs.append(
            [
                *(delivery(f"c{number}") for number in (1, 2, 3)),
                delivery("l", "control.capacity", attempts=1),
                delivery("c4"),
            ]
        )
        async with alive(bench):
            assert gate.entered == ["c1", "c2", "c3"]
            assert bench.control.refused == [("c4", "full: 3 of 1 attempts are open")]
        async with alive(bench):
            assert sorted(gate.entered[3:]) == ["c1", "c2", "c3"]
            bench.stream.held = [delivery("c4")]
            bench.stream.live.put_nowait(delivery("c4"))
            await settled()
            assert bench.control.refused[-1] == ("c4", "full: 3 of 1 attempts are open")
            gate.open.set()
            await settled()
            assert ends(bench) == dict.fromkeys(("l", "c1", "c2", "c3", "c4"), "succeeded")

    asyncio.run(run())


@pytest.mark.requirement("DRN-09", "DRN-11")
def test_a_withdrawn_capability_finishes_what_it_began() -> None:
    """It takes no new command, and the other version is not concerned."""

    async def run() -> None:
        bench = Bench()
        gate = Gate(bench)
        bench.stream.backlogs.append(
            [
                delivery("c1"),
                delivery("w", "control.withdraw", capability="work", version=1),
                delivery("c2"),
                delivery("c3", "transfer"),
            ]
        )
        async with alive(bench):
            assert gate.entered == ["c1", "c3"]
            assert bench.control.refused == [("c2", "capability 'work' version 1 is withdrawn")]
            gate.open.set()
            await settled()
            assert ends(bench)["c1"] == "succeeded"

    asyncio.run(run())


@pytest.mark.requirement("ADM-03", "SES-06", "INV-9")
def test_a_command_that_was_turned_away_is_asked_for_when_an_attempt_ends() -> None:
    """The worker asks for it, and leaves alone what it holds already."""

    async def run() -> None:
        bench = Bench()
        bench.room = NodeInventory(1000, 1)
        gate = Gate(bench)
        bench.stream.backlogs.append([delivery("c1"), delivery("c2")])
        bench.stream.held = [delivery("c1"), delivery("c2"), delivery("c3")]
        async with alive(bench):
            assert bench.control.refused == [("c2", "full: 1 of 1 attempts are open")]
            gate.open.set()
            await settled()
            assert ends(bench) == {"c1": "succeeded", "c2": "succeeded"}
            assert bench.log.count("acknowledge c1") == 1
            assert bench.log.count("waiting") == 1

    asyncio.run(run())


@pytest.mark.requirement("CAP-08", "OUT-28", "SES-02")
def test_three_running_attempts_outlive_sixty_seconds_without_a_network() -> None:
    """The three attempts end, and are reported when the network is back."""

    async def run() -> None:
        bench = Bench()
        gate = Gate(bench)
        bench.store.events.append(saved_event(9))
        bench.control.faults.plan("send_event", *(network_failure() for _ in range(6)))
        bench.stream.backlogs.append([delivery(f"c{number}") for number in (1, 2, 3)])
        async with alive(bench):
            await bench.clock.run_until(10)
            gate.open.set()
            await bench.clock.run_until(70)
            assert ends(bench) == dict.fromkeys(("c9", "c1", "c2", "c3"), "succeeded")
            assert bench.log.count("execute c1") == 1

    asyncio.run(run())


@pytest.mark.requirement("OUT-32", "SES-01", "SES-02", "OUT-01")
def test_a_new_session_has_a_new_sender_and_the_old_one_is_gone() -> None:
    """The new sender comes after a wait, and its first wait is 1 s again."""

    async def run() -> None:
        bench = Bench()
        async with alive(bench):
            bench.store.events.append(saved_event(1))
            bench.control.faults.plan("send_event", network_failure())
            bench.quiet.event_saved()
            await bench.clock.run_until(1.5)
            bench.stream.live.put_nowait(network_failure())
            await settled()
            await bench.clock.run_until(10)
            assert bench.store.reported == ["event-1"]
            assert bench.control.sent_under == ["session-1", "session-2"]

    asyncio.run(run())


@pytest.mark.requirement("ATT-12")
def test_the_same_ids_and_clock_give_the_same_run() -> None:
    """Two lives on equal doubles make the same calls and the same identities."""

    async def run() -> tuple[list[str], list[object]]:
        bench = Bench()
        bench.stream.backlogs.append([delivery("c1"), delivery("d", "control.drain")])
        async with alive(bench):
            pass
        return bench.log, list(bench.control.sent)

    assert asyncio.run(run()) == asyncio.run(run())


@pytest.mark.requirement("CAP-01", "REC-02")
def test_the_runtime_knows_no_capability_by_name() -> None:
    """Another capability under another name takes the same way."""

    async def run() -> None:
        bench = Bench()
        bench.capabilities.policies = {"quite another": RecoveryPolicy.RESUME}
        bench.stream.backlogs.append([delivery("c1", "quite another")])
        async with alive(bench):
            assert ends(bench) == {"c1": "succeeded"}
        assert command("c1") != command("c2")

    asyncio.run(run())
