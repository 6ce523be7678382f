"""Processes that are killed, or frozen and woken, at each crash point of a commit."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from checkpoint_child import RUN, facts, snapshot
from checkpoint_media import DURABLE_KINDS, Medium

from harness import points
from worker_under_test.checkpoint.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterator

CHILD = Path(__file__).with_name("checkpoint_child.py")
DEADLINE_S = 60


@contextmanager
def child(kind: str, folder: Path, *action: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    """Start a child, and kill it at the end or at the deadline if it is still there."""
    path = os.pathsep.join([str(CHILD.parent), *sys.path])
    process = subprocess.Popen(
        [sys.executable, CHILD, kind, folder, *action],
        env={**os.environ, "PYTHONPATH": path, **more},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(DEADLINE_S, process.kill)
    watchdog.start()
    try:
        with process:
            try:
                yield process
            finally:
                process.kill()
    finally:
        watchdog.cancel()


@contextmanager
def stopped_child(
    kind: str, folder: Path, label: str, *action: str
) -> Iterator[subprocess.Popen[str]]:
    """Start a child and wait until it has stopped itself at a crash point."""
    trace, orders = folder / "trace", folder / "orders"
    stop = {"label": label, "key": "run", "value": RUN, "ordinal": 1}
    orders.write_text(json.dumps({"trace": str(trace), "stops": [stop]}))
    armed = {points.SWITCH: "1", points.ORDERS: str(orders)}
    with child(kind, folder, *action, **armed) as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), "the child never reached its crash point"
        last = json.loads(trace.read_text().splitlines()[-1])
        assert (last["label"], last["stop"]) == (label, True)
        yield process


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a child and prove that this is what it died of."""
    process.kill()
    assert process.wait(DEADLINE_S) == -signal.SIGKILL


def run_child(kind: str, folder: Path, *action: str) -> object:
    """Run a child to its end and return what it told."""
    with child(kind, folder, *action) as process:
        told, _ = process.communicate()
        assert process.returncode == 0
    return json.loads(told)


def commit_here(kind: str, folder: Path, seq: int) -> None:
    """Store a snapshot from this process."""

    async def commit() -> None:
        async with Medium(kind, folder).open() as store:
            await store.save_if_newer(snapshot(seq))

    asyncio.run(commit())


class Strike(NamedTuple):
    """Where a committing process is killed, and what its successor must find.

    Attributes:
        point: Its id in docs/points.md.
        label: The crash point.
        kinds: Stores that have it.
        before: Number stored before, 0 for nothing.
        committed: Number that is being committed.
        after: Number stored afterwards.
    """

    point: str
    label: str
    kinds: tuple[str, ...]
    before: int
    committed: int
    after: int


STRIKES = [
    Strike("CP-E1", "snapshot.accept.after", DURABLE_KINDS, 5, 6, 5),
    Strike("CP-E2", "snapshot.save.mid", ("sqlite",), 5, 6, 5),
    Strike("CP-E3", "snapshot.save.after", ("sqlite",), 5, 6, 6),
    Strike("CP-E4", "snapshot.release.before", DURABLE_KINDS, 5, 4, 5),
    Strike("CP-E5", "snapshot.commit.after", DURABLE_KINDS, 5, 6, 6),
    Strike("CP-E1-first", "snapshot.accept.after", DURABLE_KINDS, 0, 1, 0),
    Strike("CP-E2-first", "snapshot.save.mid", ("sqlite",), 0, 1, 0),
    Strike("CP-E5-first", "snapshot.commit.after", DURABLE_KINDS, 0, 1, 1),
]


@pytest.mark.requirement("COM-09", "COM-27", "STO-17", "STO-18", "SNP-01", "SNP-02")
@pytest.mark.parametrize(
    ("kind", "strike"),
    [
        pytest.param(kind, strike, id=f"{kind}-{strike.point}")
        for strike in STRIKES
        for kind in strike.kinds
    ],
)
def test_killed_within_a_commit(tmp_path: Path, kind: str, strike: Strike) -> None:
    """Killed at a point of a commit, it leaves old or new as the table says, and no wedge.

    A new process, which derives the same run id by itself, loads exactly one of the two snapshots,
    seeds, and commits the next number.
    """
    if strike.before:
        commit_here(kind, tmp_path, strike.before)
    with stopped_child(kind, tmp_path, strike.label, "commit", str(strike.committed)) as process:
        kill(process)
    assert run_child(kind, tmp_path, "resume") == [
        facts(snapshot(strike.after)) if strike.after else None,
        facts(snapshot(strike.after + 1)),
    ]


@pytest.mark.requirement("GAT-21", "GAT-23", "COM-20", "COM-22", "CP-F2")
@pytest.mark.parametrize("kind", DURABLE_KINDS)
def test_killed_between_load_and_seed(tmp_path: Path, kind: str) -> None:
    """Killed twice between load and seed, the third start seeds the same 5."""
    commit_here(kind, tmp_path, 5)
    for _ in range(2):
        with stopped_child(kind, tmp_path, "gate.seed.before", "seed") as process:
            kill(process)
    assert run_child(kind, tmp_path, "seed") == 5


@pytest.mark.requirement("SNP-01", "STO-18", "COM-09")
@pytest.mark.parametrize("kind", DURABLE_KINDS)
def test_killed_after_a_save(tmp_path: Path, kind: str) -> None:
    """What a process was told has landed, a new process finds in full."""
    with child(kind, tmp_path, "commit", "3") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == "landed"
        kill(process)
    assert run_child(kind, tmp_path, "resume") == [facts(snapshot(3)), facts(snapshot(4))]


@pytest.mark.requirement("COM-25", "COM-28", "STO-13", "GAT-26")
@pytest.mark.parametrize("kind", DURABLE_KINDS)
def test_a_zombie_that_wakes_up(tmp_path: Path, kind: str) -> None:
    """A process frozen before its save of 4 wakes to a stored 5 and is refused."""
    with stopped_child(kind, tmp_path, "snapshot.accept.after", "commit", "4") as old:
        commit_here(kind, tmp_path, 5)
        os.kill(old.pid, signal.SIGCONT)
        told, _ = old.communicate()
    assert json.loads(told) == "stale"
    assert run_child(kind, tmp_path, "resume") == [facts(snapshot(5)), facts(snapshot(6))]


@pytest.mark.requirement("COM-25", "STO-12", "STO-13")
def test_a_writer_frozen_within_its_transaction(tmp_path: Path) -> None:
    """Frozen before its COMMIT, a writer holds others off, and lands when woken.

    Nobody overtakes it in the middle: a 7 gets an error in time and finds the 5, not the 6.
    """
    commit_here("sqlite", tmp_path, 5)

    async def fail_to_overtake() -> None:
        path = Medium("sqlite", tmp_path).database
        async with await SqliteStore.open(path, busy_timeout_s=0.05) as store:
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                await store.save_if_newer(snapshot(7))
            assert await store.load(RUN) == snapshot(5)

    with stopped_child("sqlite", tmp_path, "snapshot.save.mid", "commit", "6") as old:
        asyncio.run(fail_to_overtake())
        os.kill(old.pid, signal.SIGCONT)
        assert json.loads(old.communicate()[0]) == "landed"
    assert run_child("sqlite", tmp_path, "resume") == [facts(snapshot(6)), facts(snapshot(7))]
