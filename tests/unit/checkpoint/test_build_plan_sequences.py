"""Several plans in a row: the sequences BP-S1 to BP-S7, lived by a small host."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from plan_notation import parse_graph
from toy_host import RUN, World, live

from worker_under_test.checkpoint import AnomalyKind

CHAIN = parse_graph("a b c")
FAN = parse_graph("a b<a c<a d<b,c")


@pytest.mark.requirement("SNP-14", "SNP-15", "ORC-01", "ORC-06")
def test_s1_a_crash_before_each_commit() -> None:
    """One step is redone per crash, never more."""

    async def sequence() -> None:
        world = World()
        runs = [(await live(world, CHAIN, commits=min(n, 1))).run for n in range(4)]
        runs.append((await live(world, CHAIN)).run)
        assert runs == [("a", "b", "c"), ("a", "b", "c"), ("b", "c"), ("c",), ()]
        assert Counter(world.effects) == {"a": 2, "b": 2, "c": 2}

    asyncio.run(sequence())


@pytest.mark.requirement("ORC-11", "AMB-16", "M-33")
@pytest.mark.parametrize(
    ("launder", "skip", "run"), [(False, ("a", "b"), ("c",)), (True, ("a", "b", "c"), ())]
)
def test_s2_no_laundering(*, launder: bool, skip: tuple[str, ...], run: tuple[str, ...]) -> None:
    """The next snapshot builds on skip; the wrong host loses c."""

    async def sequence() -> None:
        world = World()
        await world.put(["a", "c"])
        first = await live(world, CHAIN, commits=1, launder=launder)
        assert (first.skip, first.run) == (("a",), ("b", "c"))
        second = await live(world, CHAIN, launder=launder)
        assert (second.skip, second.run) == (skip, run)

    asyncio.run(sequence())


@pytest.mark.requirement("PLN-16", "ANO-03", "AMB-16")
def test_s3_package_changed_and_changed_back() -> None:
    """A done step that the graph forgot is not run twice."""

    async def sequence() -> None:
        world = World()
        await world.put(["a", "b"])
        shrunk = await live(world, parse_graph("a c"))
        assert (shrunk.skip, shrunk.run) == (("a",), ("c",))
        assert [(a.kind, a.step) for a in shrunk.anomalies] == [
            (AnomalyKind.DONE_NOT_IN_GRAPH, "b")
        ]
        back = await live(world, CHAIN)
        assert (back.skip, back.run, back.anomalies) == (("a", "b", "c"), (), ())
        assert world.effects == ["c"]

    asyncio.run(sequence())


@pytest.mark.requirement("PLN-09", "GAT-27")
def test_s4_fan_out_with_one_lane_landed() -> None:
    """C landed while b was running; only b and d are left."""

    async def sequence() -> None:
        world = World()
        await world.put(["a", "c"])
        plan = await live(world, FAN)
        assert (plan.skip, plan.run, plan.anomalies) == (("a", "c"), ("b", "d"), ())

    asyncio.run(sequence())


@pytest.mark.requirement("ORC-07")
def test_s5_all_done_and_not_closed() -> None:
    """The last step landed and the end did not; the host closes without effects."""

    async def sequence() -> None:
        world = World()
        await world.put(["a", "b", "c"])
        plan = await live(world, CHAIN, close=True)
        assert (plan.run, plan.blocked) == ((), False)
        assert (await world.store.load(RUN)).is_terminal
        assert world.effects == []

    asyncio.run(sequence())


@pytest.mark.requirement("PLN-17", "PLN-23", "PLN-29")
def test_s6_the_graph_grows_after_the_end() -> None:
    """The run is blocked at every restart, with no effect and no commit."""

    async def sequence() -> None:
        world = World()
        await live(world, CHAIN, close=True)
        world.effects.clear()
        ended = await world.store.load(RUN)
        for _ in range(3):
            plan = await live(world, parse_graph("a b c x"), close=True)
            assert (plan.blocked, plan.skip, plan.run) == (True, (), ())
        assert world.effects == []
        assert await world.store.load(RUN) == ended

    asyncio.run(sequence())


@pytest.mark.requirement("STP-10", "PLN-28")
def test_s7_a_dangling_step_is_in_every_plan() -> None:
    """A dangling step runs once per plan and never counts as finished."""

    async def sequence() -> None:
        world = World()
        for _ in range(3):
            assert (await live(world, parse_graph("a! b<ghost"))).run[-1] == "b"
        assert Counter(world.effects) == {"a": 1, "b": 3}

    asyncio.run(sequence())
