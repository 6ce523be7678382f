"""What an armed process does: count, trace, stop, read its orders again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import harness
from harness import points
from harness.points.armed import Armed, StopOrder, write_orders

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(harness.__file__).parent.parent

CHILD = """
import signal
signal.alarm(30)
from harness.points import crash_point
for command in ("c1", "c2", "c2", "c1", "c2"):
    crash_point("ack.send.before", command=command, size=7)
crash_point("ack.send.after")
"""


class Orders:
    """The orders file and the trace of one armed process."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "orders.json"
        self._trace = folder / "trace.ndjson"
        self.write()

    def write(self, *stops: StopOrder) -> None:
        """Order stops."""
        write_orders(str(self.path), str(self._trace), stops)

    def trace(self) -> list[dict[str, object]]:
        """Read what was traced so far."""
        return [json.loads(line) for line in self._trace.read_text().splitlines()]


class Child:
    """A real armed process, moved by hand."""

    def __init__(self, orders: Orders) -> None:
        environment = {
            "PYTHONPATH": str(ROOT),
            points.SWITCH: "1",
            points.ORDERS: str(orders.path),
        }
        self._process = subprocess.Popen([sys.executable, "-c", CHILD], env=environment)

    def wait_stopped(self) -> bool:
        """Wait until it stops itself or ends; tell whether it stopped."""
        _, status = os.waitpid(self._process.pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            assert os.WSTOPSIG(status) == signal.SIGSTOP
            return True
        self._process.returncode = os.waitstatus_to_exitcode(status)
        return False

    def go_on(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    @property
    def exit_code(self) -> int | None:
        """Its exit code, once it has ended."""
        return self._process.returncode

    def close(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    """Give orders without a stop."""
    return Orders(tmp_path)


@pytest.fixture
def child(orders: Orders) -> Iterator[Child]:
    """Give a process that was ordered to stop at the second hit of c2."""
    orders.write(StopOrder("ack.send.before", "command", "c2", 2))
    process = Child(orders)
    yield process
    process.close()


def test_hits_are_counted_by_label_and_by_context(orders: Orders) -> None:
    """A hit is ``label#n``, and ``label[key=value]#n`` with that context."""
    armed = Armed.from_file(str(orders.path))
    armed.hit("a.b.before", {"command": "c1"})
    armed.hit("a.b.before", {"command": "c2", "part": 1})
    armed.hit("a.b.before", {"command": "c1", "part": 1})
    armed.hit("a.b.after", {"command": "c1"})
    armed.hit("a.b.before", {})
    assert [line["hits"] for line in orders.trace()] == [
        {"": 1, "command": 1},
        {"": 2, "command": 1, "part": 1},
        {"": 3, "command": 2, "part": 2},
        {"": 1, "command": 1},
        {"": 4},
    ]


def test_a_trace_line_says_which_hit_it_is(orders: Orders) -> None:
    """The trace, in whole lines of JSON, is what a strike is proved by."""
    Armed.from_file(str(orders.path)).hit(
        "a.b.mid", {"name": 'é"\n\ud800', "number": 3, "none": None}
    )
    assert orders.trace() == [
        {
            "label": "a.b.mid",
            "context": {"name": 'é"\n\ud800', "number": "3", "none": "None"},
            "hits": {"": 1, "name": 1, "number": 1, "none": 1},
            "stop": False,
        }
    ]


def test_context_is_compared_as_text(orders: Orders) -> None:
    """A number and its text are one context value."""
    armed = Armed.from_file(str(orders.path))
    armed.hit("a.b.before", {"part": 1})
    armed.hit("a.b.before", {"part": "1"})
    assert orders.trace()[-1]["hits"] == {"": 2, "part": 2}


def test_stops_that_do_not_match_stop_nothing(orders: Orders) -> None:
    """Another label, key, value or ordinal is another moment."""
    orders.write(
        StopOrder("a.b.after"),
        StopOrder("a.b.before", ordinal=3),
        StopOrder("a.b.before", "command", "c2"),
        StopOrder("a.b.before", "part", "c1"),
        StopOrder("a.b.before", "command", "c1", 2),
    )
    armed = Armed.from_file(str(orders.path))
    armed.hit("a.b.before", {"command": "c1"})
    armed.hit("a.b.before", {})
    assert [line["stop"] for line in orders.trace()] == [False, False]


def test_threads_are_counted_one_by_one(orders: Orders) -> None:
    """Concurrent hits get one number each, in the order of the trace."""
    armed = Armed.from_file(str(orders.path))
    together = threading.Barrier(4)

    def work(name: str) -> None:
        together.wait()
        for _ in range(50):
            armed.hit("a.b.before", {"thread": name})

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen: Counter[str] = Counter()
    for number, line in enumerate(orders.trace(), start=1):
        context, hits = line["context"], line["hits"]
        assert isinstance(context, dict)
        seen[context["thread"]] += 1
        assert hits == {"": number, "thread": seen[context["thread"]]}
    assert seen == dict.fromkeys(("t0", "t1", "t2", "t3"), 50)


def test_it_stops_itself_where_it_was_ordered(orders: Orders, child: Child) -> None:
    """It stops at the n-th hit of a context, and the trace says so first."""
    assert child.wait_stopped()
    trace = orders.trace()
    assert [line["stop"] for line in trace] == [False, False, True]
    assert trace[-1] == {
        "label": "ack.send.before",
        "context": {"command": "c2", "size": "7"},
        "hits": {"": 3, "command": 2, "size": 3},
        "stop": True,
    }


def test_orders_are_read_again_when_it_goes_on(orders: Orders, child: Child) -> None:
    """Orders may change while it stands still; what was counted stays."""
    assert child.wait_stopped()
    orders.write(StopOrder("ack.send.before", "command", "c1", 2))
    child.go_on()
    assert child.wait_stopped()
    assert len(orders.trace()) == 4
    orders.write()
    child.go_on()
    assert not child.wait_stopped()
    assert child.exit_code == 0
    assert [line["stop"] for line in orders.trace()] == [False, False, True, True, False, False]


def test_orders_that_change_while_it_runs_wait_for_the_next_stop(
    orders: Orders, child: Child
) -> None:
    """A stop without an ordinal is every hit; a star is every point."""
    assert child.wait_stopped()
    orders.write(StopOrder("ack.send.before"))
    child.go_on()
    assert child.wait_stopped()
    assert len(orders.trace()) == 4
    orders.write(StopOrder("*"))
    for reached in (5, 6):
        child.go_on()
        assert child.wait_stopped()
        assert len(orders.trace()) == reached
    child.go_on()
    assert not child.wait_stopped()
    assert child.exit_code == 0


def test_a_stopped_process_can_be_killed(orders: Orders, child: Child) -> None:
    """The wait status says SIGKILL, and nothing after the stop was reached."""
    assert child.wait_stopped()
    child.close()
    assert child.exit_code == -signal.SIGKILL
    assert len(orders.trace()) == 3
