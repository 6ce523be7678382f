"""Intake: admit, save, confirm, hand on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from planned_faults import network_failure
from worker_bench import Bench, attempt, command

from worker_under_test.domain.attempt import Attempt, AttemptState
from worker_under_test.domain.errors import Kind
from worker_under_test.domain.order import Drain, Limit, Offer
from worker_under_test.domain.registration import NodeInventory
from worker_under_test.ports.command_stream import Delivery

if TYPE_CHECKING:
    from worker_under_test.application.intake import Intake
    from worker_under_test.domain.command import Command
    from worker_under_test.domain.order import Order
    from worker_under_test.ports.local_store import Standing


async def take_in(intake: Intake, given: Command) -> tuple[Attempt | None, bool]:
    """Save and answer a command; return what is to be executed, and whether it was confirmed."""
    saved = await intake.save(given)
    acknowledged = await intake.answer(given, saved)
    return intake.attempt_at(given, saved), acknowledged


@pytest.mark.requirement("INB-01", "INB-08")
def test_a_command_is_saved_before_it_is_confirmed() -> None:
    """The order of the two steps."""

    async def run() -> None:
        bench = Bench()
        assert await take_in(bench.intake(), command()) == (Attempt("attempt-0-1", command()), True)
        assert bench.log == ["accept c1", "acknowledge c1"]

    asyncio.run(run())


@pytest.mark.requirement("INB-03", "INB-06")
def test_a_repeat_is_confirmed_again_and_nothing_else() -> None:
    """A repeat gives two confirmations and one attempt."""

    async def run() -> None:
        bench = Bench()
        intake = bench.intake()
        taken = await asyncio.gather(take_in(intake, command()), take_in(intake, command()))
        assert [each is None for each, _ in taken] == [False, True]
        assert len(bench.store.attempts) == 1
        assert bench.log.count("acknowledge c1") == 2

    asyncio.run(run())


@pytest.mark.requirement("INB-03", "INB-04", "INB-06", "ATT-10")
@pytest.mark.parametrize("state", list(AttemptState))
def test_a_repeat_in_every_state_changes_nothing(state: AttemptState) -> None:
    """A repeat is acknowledged again, also by a full and draining worker."""

    async def run() -> None:
        bench = Bench()
        bench.store.put(attempt(), state)
        bench.room = NodeInventory(1000, 0)
        bench.admission.obey(Drain(draining=True))
        assert await take_in(bench.intake(), command()) == (None, True)
        assert bench.store.states == {"attempt-c1": state}
        assert bench.control.refused == []

    asyncio.run(run())


@pytest.mark.requirement("INB-12", "AMB-12")
def test_other_content_under_a_known_id_is_refused_visibly() -> None:
    """The first stays, the second is neither confirmed nor executed."""

    async def run() -> None:
        bench = Bench()
        intake = bench.intake()
        await take_in(intake, command(seed="a"))
        assert await take_in(intake, command(seed="b")) == (None, False)
        assert bench.store.commands["c1"][0] == command(seed="a")
        assert bench.log.count("acknowledge c1") == 1
        assert bench.control.refused == [("c1", "known with other content")]
        assert bench.observed.names == ["command refused"]

    asyncio.run(run())


@pytest.mark.requirement("INB-07")
def test_a_failed_save_is_not_confirmed() -> None:
    """The error is the store's own, and the ACK is not sent."""

    async def run() -> None:
        bench = Bench()
        bench.store.faults.plan("accept", OSError("disk full"))
        with pytest.raises(OSError, match="disk full"):
            await take_in(bench.intake(), command())
        assert bench.log == ["accept c1"]

    asyncio.run(run())


@pytest.mark.requirement("INB-09", "AMB-11")
def test_a_lost_confirmation_does_not_stop_the_execution() -> None:
    """The attempt is handed on, and the loss is visible."""

    async def run() -> None:
        bench = Bench()
        bench.control.faults.plan("acknowledge", network_failure())
        taken, acknowledged = await take_in(bench.intake(), command())
        assert taken is not None
        assert not acknowledged
        assert bench.observed.names == ["acknowledgement lost"]

    asyncio.run(run())


@pytest.mark.requirement("INB-13")
def test_a_malformed_command_leaves_nothing_however_often_it_comes() -> None:
    """It is refused visibly each time, without a row or a confirmation."""

    async def run() -> None:
        bench = Bench()
        intake = bench.intake()
        for number in range(100):
            assert intake.receive(Delivery(str(number), '{"command_id": ""}')) is None
        assert bench.log == []
        assert len(bench.observed.events) == 100
        assert getattr(bench.observed.events[0][1], "kind", None) is Kind.INVALID

    asyncio.run(run())


@pytest.mark.requirement("ADM-01", "ADM-03", "INV-15")
def test_of_fifty_at_once_as_many_come_in_as_there_is_room_for() -> None:
    """The check and the saving are one step; the rest is refused."""

    async def run() -> None:
        bench = Bench()
        bench.room = NodeInventory(1000, 1)
        look = bench.store.standing

        async def looks_slowly(command_id: str) -> Standing:
            standing = await look(command_id)
            await asyncio.sleep(0)  # whoever is not kept out looks now, before this one is saved
            return standing

        bench.store.standing = looks_slowly  # type: ignore[method-assign]
        intake = bench.intake()
        given = [command(f"c{number}") for number in range(50)]
        taken = await asyncio.gather(*(take_in(intake, each) for each in given))
        assert sum(each is not None for each, _ in taken) == 1
        assert len(bench.store.attempts) == 1
        assert len(bench.control.refused) == 49
        assert bench.control.refused[0][1] == "full: 1 of 1 attempts are open"

    asyncio.run(run())


@pytest.mark.requirement("ADM-02", "REC-18")
@pytest.mark.parametrize(
    "state", [AttemptState.PENDING, AttemptState.RUNNING, AttemptState.RECOVERING]
)
def test_what_an_earlier_life_left_open_takes_room(state: AttemptState) -> None:
    """Room is counted from the store, so it is right after a restart."""

    async def run() -> None:
        bench = Bench()
        bench.room = NodeInventory(1000, 1)
        bench.store.put(attempt("old"), state)
        assert await take_in(bench.intake(), command()) == (None, False)
        bench.store.states["attempt-old"] = AttemptState.SUCCEEDED
        assert (await take_in(bench.intake(), command()))[0] is not None

    asyncio.run(run())


@pytest.mark.requirement("DRN-04", "DRN-08", "DRN-09", "AMB-20")
@pytest.mark.parametrize(
    ("order", "reason"),
    [
        (Drain(draining=True), "draining"),
        (Limit(0), "full: 0 of 0 attempts are open"),
        (Offer("work", 1, offered=False), "capability 'work' version 1 is withdrawn"),
    ],
)
def test_an_order_keeps_new_commands_out_and_leaves_no_row(order: Order, reason: str) -> None:
    """A new command is refused explicitly, not acknowledged and not saved."""

    async def run() -> None:
        bench = Bench()
        bench.admission.obey(order)
        assert await take_in(bench.intake(), command()) == (None, False)
        assert bench.control.refused == [("c1", reason)]
        assert bench.store.attempts == {}
        assert "acknowledge c1" not in bench.log

    asyncio.run(run())


@pytest.mark.requirement("DRN-10", "REG-07")
def test_an_inventory_that_cannot_be_read_or_is_empty_counts_as_full() -> None:
    """Capacity that cannot be read, or is 0, means full and not unlimited."""

    async def run() -> None:
        bench = Bench()
        for room in (NodeInventory(0, 4), NodeInventory(1000, 0)):
            bench.room = room
            assert (await take_in(bench.intake(), command()))[0] is None
        del bench.room
        assert (await take_in(bench.intake(), command()))[0] is None
        assert "inventory cannot be read" in bench.observed.names

    asyncio.run(run())


@pytest.mark.requirement("ADM-03")
def test_room_that_is_made_during_the_check_is_not_missed() -> None:
    """A refusal counts only if no attempt ended meanwhile; else it is looked at again."""

    async def run() -> None:
        bench = Bench()
        bench.room = NodeInventory(1000, 1)
        bench.store.put(attempt("old"), AttemptState.RUNNING)
        standing = bench.store.standing
        looks = 0

        async def ends_meanwhile(command_id: str) -> object:
            nonlocal looks
            looks += 1
            found = await standing(command_id)
            bench.store.states["attempt-old"] = AttemptState.SUCCEEDED
            if looks == 1:
                bench.admission.look_again()
            return found

        bench.store.standing = ends_meanwhile  # type: ignore[method-assign,assignment]
        assert (await take_in(bench.intake(), command()))[0] is not None
        assert looks == 2

    asyncio.run(run())
