"""Intake: save, confirm, hand on."""

from __future__ import annotations

import asyncio

import pytest
from worker_doubles import Bench, command, network_failure

from worker_under_test.application.intake import Intake
from worker_under_test.domain.errors import Kind
from worker_under_test.ports.command_stream import Delivery


def test_a_command_is_saved_before_it_is_confirmed() -> None:
    """INB-01, INB-08: the order of the two steps."""

    async def run() -> None:
        bench = Bench()
        admitted = await Intake(bench.ports, bench.session).accept(command())
        assert admitted is not None
        assert admitted.acknowledged
        assert bench.log == ["accept c1", "acknowledge c1"]

    asyncio.run(run())


def test_a_repeat_is_confirmed_again_and_nothing_else() -> None:
    """INB-03, INB-06: one attempt, two confirmations."""

    async def run() -> None:
        bench = Bench()
        intake = Intake(bench.ports, bench.session)
        first, second = await asyncio.gather(intake.accept(command()), intake.accept(command()))
        assert first is not None
        assert second is None
        assert len(bench.store.attempts) == 1
        assert bench.log.count("acknowledge c1") == 2

    asyncio.run(run())


def test_other_content_under_a_known_id_is_refused_visibly() -> None:
    """INB-12, AMB-12: the first stays, the second is neither confirmed nor executed."""

    async def run() -> None:
        bench = Bench()
        intake = Intake(bench.ports, bench.session)
        await intake.accept(command(seed="a"))
        assert await intake.accept(command(seed="b")) is None
        assert bench.store.commands["c1"][0] == command(seed="a")
        assert bench.log.count("acknowledge c1") == 1
        assert bench.observed.names == ["command conflicts"]

    asyncio.run(run())


def test_a_failed_save_is_not_confirmed() -> None:
    """INB-07: the error is the store's own, and the ACK is not sent."""

    async def run() -> None:
        bench = Bench()
        bench.store.faults.plan("accept", OSError("disk full"))
        with pytest.raises(OSError, match="disk full"):
            await Intake(bench.ports, bench.session).accept(command())
        assert bench.log == ["accept c1"]

    asyncio.run(run())


def test_a_lost_confirmation_does_not_stop_the_execution() -> None:
    """INB-09, AMB-11: the attempt is handed on, and the loss is visible."""

    async def run() -> None:
        bench = Bench()
        bench.control.faults.plan("acknowledge", network_failure())
        admitted = await Intake(bench.ports, bench.session).accept(command())
        assert admitted is not None
        assert not admitted.acknowledged
        assert bench.observed.names == ["acknowledgement lost"]

    asyncio.run(run())


def test_a_malformed_command_leaves_nothing_however_often_it_comes() -> None:
    """INB-13: refused visibly each time, no row, no confirmation."""

    async def run() -> None:
        bench = Bench()
        intake = Intake(bench.ports, bench.session)
        for number in range(100):
            assert intake.receive(Delivery(str(number), '{"command_id": ""}')) is None
        assert bench.log == []
        assert len(bench.observed.events) == 100
        assert getattr(bench.observed.events[0][1], "kind", None) is Kind.INVALID

    asyncio.run(run())
