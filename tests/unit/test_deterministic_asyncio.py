"""The scheduler: the order of I/O from a seed, and virtual time."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from harness.deterministic_asyncio import Scheduler

FOREVER_S = 1e9
"""A wait that no test could outlast, were it real."""


class Port:
    """A port whose operations take several steps of the event loop, and are noted."""

    def __init__(self) -> None:
        self.noted: list[str] = []

    async def fetch(self, name: str, *, answer: str = "") -> str:
        """Do something in several steps."""
        self.noted.append(f"{name} begins")
        for _ in range(3):
            await asyncio.sleep(0)
        self.noted.append(f"{name} ends")
        return answer or name

    async def listen(self) -> str:
        """Wait for something without bound, as far as the port knows."""
        return "heard"

    def size(self) -> int:
        """Answer at once."""
        return len(self.noted)

    @property
    def ends(self) -> list[str]:
        """Names of the operations, in the order of their ends."""
        return [noted.removesuffix(" ends") for noted in self.noted if noted.endswith(" ends")]


def order(seed: str, tasks: int = 6) -> list[str]:
    """Return the order in which tasks that ask at once get their turns."""
    port = Port()
    scheduler = Scheduler(seed)
    serialized = scheduler.serialize(port)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for n in range(tasks):
                group.create_task(serialized.fetch(f"t{n}"))

    scheduler.run(main)
    return port.ends


def test_one_seed_gives_one_order() -> None:
    """Two runs with one seed take their turns in the same order."""
    assert order("seed") == order("seed")
    assert sorted(order("seed")) == [f"t{n}" for n in range(6)]


def test_other_seeds_give_other_orders() -> None:
    """The order comes from the seed, not from the order of asking."""
    orders = {tuple(order(f"seed-{n}")) for n in range(20)}
    assert len(orders) > 10


def test_every_one_is_first_for_some_seed() -> None:
    """No task is favoured: each of three gets the first turn under some seed."""
    assert {order(f"seed-{n}", tasks=3)[0] for n in range(40)} == {"t0", "t1", "t2"}


def test_one_turn_is_taken_at_a_time() -> None:
    """An operation ends before the next begins, however many steps it takes."""
    port = Port()
    scheduler = Scheduler("seed")
    serialized = scheduler.serialize(port)

    async def worker(name: str) -> None:
        for n in range(3):
            await serialized.fetch(f"{name}{n}")

    async def main() -> None:
        await asyncio.gather(*(worker(name) for name in "abcd"))

    scheduler.run(main)
    assert len(port.noted) == 24
    for begins, ends in zip(port.noted[::2], port.noted[1::2], strict=True):
        assert ends == begins.replace("begins", "ends")


def test_an_operation_inside_a_turn_belongs_to_it() -> None:
    """A port that is built on a port takes one turn, and does not wait for itself."""
    port = Port()
    scheduler = Scheduler("seed")
    serialized = scheduler.serialize(port)

    async def outer(name: str) -> str:
        await serialized.fetch(f"{name}1")
        return await serialized.fetch(f"{name}2")

    async def main() -> list[str]:
        return await asyncio.gather(*(scheduler.turn(partial(outer, name)) for name in "ab"))

    assert scheduler.run(main) == ["a2", "b2"]
    assert port.ends in (["a1", "a2", "b1", "b2"], ["b1", "b2", "a1", "a2"])


def test_a_turn_after_a_turn_is_another_one() -> None:
    """After a turn a task waits like everyone else: two tasks interleave under some seed."""

    def interleaving(seed: str) -> list[str]:
        port = Port()
        scheduler = Scheduler(seed)
        serialized = scheduler.serialize(port)

        async def worker(name: str) -> None:
            await serialized.fetch(f"{name}1")
            await serialized.fetch(f"{name}2")

        async def main() -> None:
            await asyncio.gather(worker("a"), worker("b"))

        scheduler.run(main)
        return port.ends

    seen = {tuple(interleaving(f"seed-{n}")) for n in range(40)}
    assert ("a1", "b1", "a2", "b2") in seen
    assert ("a1", "a2", "b1", "b2") in seen


def test_who_is_cancelled_while_waiting_takes_no_turn() -> None:
    """A cancelled task leaves the queue, and the others go on."""
    port = Port()
    scheduler = Scheduler("seed")
    serialized = scheduler.serialize(port)

    async def main() -> None:
        tasks = [asyncio.create_task(serialized.fetch(f"t{n}")) for n in range(3)]
        await asyncio.sleep(0)  # all three wait now
        tasks[1].cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(done[1], asyncio.CancelledError)

    scheduler.run(main)
    assert sorted(port.ends) == ["t0", "t2"]


def test_who_is_cancelled_with_the_turn_just_granted_gives_it_back() -> None:
    """Between the grant and the first step a cancellation does not lose the turn."""
    port = Port()
    scheduler = Scheduler("seed")
    serialized = scheduler.serialize(port)

    async def main() -> None:
        first = asyncio.create_task(serialized.fetch("first"))
        await asyncio.sleep(0)
        assert scheduler.open_next()  # granted; the task has not run yet
        assert not scheduler.open_next()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await serialized.fetch("second")

    scheduler.run(main)
    assert port.noted == ["second begins", "second ends"]


def test_who_is_cancelled_in_a_turn_gives_it_back() -> None:
    """A cancelled operation ends its turn, and the others go on."""
    port = Port()
    scheduler = Scheduler("seed")
    serialized = scheduler.serialize(port)
    inside = asyncio.Event()

    async def stuck() -> None:
        inside.set()
        await asyncio.get_running_loop().create_future()

    async def main() -> None:
        task = asyncio.create_task(scheduler.turn(stuck))
        await inside.wait()
        task.cancel()
        await serialized.fetch("next")
        assert task.cancelled()

    scheduler.run(main)
    assert port.ends == ["next"]


def test_an_operation_that_fails_gives_its_turn_back() -> None:
    """An error comes to the one who asked, and the others go on."""
    port = Port()
    scheduler = Scheduler("seed")
    serialized = scheduler.serialize(port)

    async def failing() -> None:
        raise ConnectionError("lost")

    async def main() -> None:
        with pytest.raises(ConnectionError, match="lost"):
            await scheduler.turn(failing)
        await serialized.fetch("next")

    scheduler.run(main)
    assert port.ends == ["next"]


@pytest.mark.requirement("HAR-06")
def test_sleepers_wake_in_the_order_of_their_times() -> None:
    """Virtual time goes from one wake-up to the next, equal times in order of asking."""
    scheduler = Scheduler("seed")
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, *delays_s: float) -> None:
        for delay_s in delays_s:
            await scheduler.sleep(delay_s)
            woken.append((name, scheduler.now_s))

    async def main() -> None:
        await asyncio.gather(
            sleeper("long", FOREVER_S), sleeper("twice", 10, 30), sleeper("c", 20), sleeper("d", 20)
        )

    scheduler.run(main)
    assert woken == [
        ("twice", 10),
        ("c", 20),
        ("d", 20),
        ("twice", 40),
        ("long", FOREVER_S),
    ]


@pytest.mark.requirement("HAR-06")
def test_no_one_sleeps_past_a_waiting_operation() -> None:
    """Virtual time moves only when no I/O is left to do."""
    port = Port()
    scheduler = Scheduler("seed")
    serialized = scheduler.serialize(port)

    async def sleeper() -> None:
        await scheduler.sleep(1)
        port.noted.append("awake ends")

    async def main() -> None:
        await asyncio.gather(sleeper(), *(serialized.fetch(name) for name in "abc"))

    scheduler.run(main)
    assert port.ends[-1] == "awake"


@pytest.mark.requirement("HAR-06")
def test_a_cancelled_sleeper_does_not_move_time() -> None:
    """A back-off that was given up costs nothing."""
    scheduler = Scheduler("seed")

    async def main() -> None:
        given_up = asyncio.create_task(scheduler.sleep(5))
        await asyncio.sleep(0)
        given_up.cancel()
        await scheduler.sleep(10)

    scheduler.run(main)
    assert scheduler.now_s == 10


def test_a_serialized_port_is_the_port() -> None:
    """Arguments, results and plain methods of a serialized port are the port's own."""
    port = Port()
    scheduler = Scheduler("seed")
    serialized = scheduler.serialize(port)

    async def main() -> str:
        assert serialized.size() == 0
        return await serialized.fetch("a", answer="b")

    assert scheduler.run(main) == "b"
    assert serialized.size() == 2
    with pytest.raises(AttributeError, match="no_such_method"):
        serialized.no_such_method  # type: ignore[attr-defined]  # noqa: B018


def test_a_free_method_takes_no_turn() -> None:
    """What waits without bound must not hold up the others, nor be held up by them."""
    port = Port()
    scheduler = Scheduler("seed")
    serialized = scheduler.serialize(port, free=frozenset({"listen"}))
    assert serialized.listen == port.listen
    assert serialized.fetch != port.fetch

    async def main() -> str:
        async def occupied() -> str:
            # Nobody else can take a turn now, and this ends only when the free method has.
            return await outside

        outside = asyncio.create_task(serialized.listen())
        return await scheduler.turn(occupied)

    assert scheduler.run(main) == "heard"


def test_what_waits_for_a_block_is_called_last_and_once() -> None:
    """It is called when nothing else can go on: after every operation and every sleeper."""
    port = Port()
    scheduler = Scheduler("seed")
    serialized = scheduler.serialize(port)
    calls: list[float] = []

    async def main() -> None:
        blocked = asyncio.Event()

        def call() -> None:
            calls.append(scheduler.now_s)
            blocked.set()

        scheduler.when_blocked(call)
        async with asyncio.TaskGroup() as group:
            group.create_task(serialized.fetch("a"))
            group.create_task(scheduler.sleep(7))
            await blocked.wait()
        await scheduler.sleep(1)
        await serialized.fetch("b")

    scheduler.run(main)
    assert calls == [7.0]
    assert port.ends == ["a", "b"]


def test_nothing_to_open_is_said() -> None:
    """With nobody waiting, the loop is left to wait for real I/O."""
    assert not Scheduler("seed").open_next()


def test_real_waits_stay_real() -> None:
    """Real I/O is waited for: a reply from a pipe wakes its task."""
    scheduler = Scheduler("seed")

    async def main() -> bytes:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readline())
            writer.close()
            await writer.wait_closed()

        async def ask() -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"hello\n")
            line = await reader.readline()
            writer.close()
            await writer.wait_closed()
            return line

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await scheduler.turn(ask)

    assert scheduler.run(main) == b"hello\n"
