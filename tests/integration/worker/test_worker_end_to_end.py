"""The worker against the coordinator of the world, killed at every crash point."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sqlite3
import tempfile
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import harness.points
from harness.model.workload import Command, ReplyLost, Workload
from harness.world.client import World
from harness.world.coordinator.facts import read_facts
from harness.world.coordinator.service import Coordinator
from worker_under_test import main
from worker_under_test.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Hook = Callable[[str, dict[str, object]], None]

PARTS = {"a.txt": "alpha", "b.txt": "beta", "c.txt": "gamma"}
WORKLOAD = Workload(
    commands=(
        Command(
            "c1", {"capability": "compute", "version": 1, "payload": {"seed": "s", "rounds": 9}}
        ),
        Command(
            "c2",
            {
                "capability": "export",
                "version": 1,
                "payload": {
                    "name": "report",
                    "parts": [{"name": name, "text": text} for name, text in PARTS.items()],
                },
            },
        ),
        Command("c3", {"capability": "gone", "version": 1, "payload": {}}),
        Command("k", {"capability": "control.cleanup", "version": 1, "payload": {}}),
        Command(
            "x",
            {"capability": "control.cancel", "version": 1, "payload": {"command_id": "nobody"}},
        ),
        Command("d", {"capability": "control.drain", "version": 1, "payload": {}}),
        Command(
            "c4", {"capability": "compute", "version": 1, "payload": {"seed": "t", "rounds": 2}}
        ),
        Command("u", {"capability": "control.undrain", "version": 1, "payload": {}}),
    ),
    fresh=Command(
        "fresh", {"capability": "compute", "version": 1, "payload": {"seed": "f", "rounds": 1}}
    ),
    twice=frozenset({"c1"}),
    lost=(ReplyLost("ack", "c2"), ReplyLost("event", "c1"), ReplyLost("heartbeat", "c2")),
)
KINDS = {
    "c1": "succeeded",
    "c2": "succeeded",
    "c3": "failed",
    "k": "succeeded",
    "x": "succeeded",
    "d": "succeeded",
    "c4": "succeeded",
    "u": "succeeded",
    "fresh": "succeeded",
}
ASKED = len(KINDS) - 1
SOURCE = Path(main.__file__).parent
OF_OTHER_WORK = ("artifact.extend.", "process.", "tree.")
"""Labels of adapters that the commands here do not use; the scenarios of the capabilities do."""
LABELS = sorted(
    label
    for path in SOURCE.rglob("*.py")
    if not {"checkpoint", "capabilities"} & set(path.parts)
    for label in re.findall(r'crash_point\(\s*"([a-z._]+)"', path.read_text(encoding="utf-8"))
    if not label.startswith(OF_OTHER_WORK)
)
RECOVERY = ("recovery.decide.before", "recovery.decide.after")
DEADLINE_S = 20


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Give the world process that all tests here share."""
    with World.start() as world:
        yield world


@pytest.fixture
def root() -> Iterator[Path]:
    """Give a workspace with a path that is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="e-") as scratch:
        long_ago = Path(scratch) / "worker" / "files" / "artifacts" / "long-ago"
        long_ago.mkdir(parents=True)
        for name in ("a", "b"):
            (long_ago / f"{name}.attempt-0.tmp").write_text("half", encoding="utf-8")
        (Path(scratch) / "world").mkdir()
        yield Path(scratch)


@pytest.fixture
def endpoint(world: World, root: Path) -> Iterator[str]:
    """Give the endpoint of a coordinator with the workload."""
    yield world.open(root / "world", (Coordinator,), WORKLOAD)
    world.close_services()


def live(root: Path, endpoint: str, hook: Hook) -> None:
    """Be a worker until its first idle moment, with short back-offs and a hook at the points."""
    stop = asyncio.Event()

    def at_point(label: str, context: dict[str, object]) -> None:
        hook(label, context)
        if label == "worker.idle.before":
            stop.set()

    harness.points._hook = at_point
    try:
        settings = Settings(
            root / "worker", endpoint, "w1", init=True, retry_initial_s=0.01, id_seed="7"
        )
        asyncio.run(main.run(settings, stop=stop))
    finally:
        harness.points._hook = None


def forked(root: Path, endpoint: str, hook: Hook) -> int:
    """Live in a child process; return its wait status."""
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(DEADLINE_S)
            live(root, endpoint, hook)
        except BaseException:  # noqa: BLE001 - a child must never return into the test run
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def kill_at(place: str) -> Hook:
    """Return a hook that kills its process at the first hit of a point."""

    def hook(label: str, context: dict[str, object]) -> None:
        if label == place:
            os.kill(os.getpid(), signal.SIGKILL)

    return hook


def ignore(label: str, context: dict[str, object]) -> None:
    """Do nothing at a point."""


def check(root: Path, commands: int) -> None:
    """Check what must hold once the worker is idle."""
    facts = read_facts(root / "world")
    wanted = dict(list(KINDS.items())[:commands])
    assert {event.command_id: event.kind for event in facts.events} == wanted
    assert len(facts.events) == commands
    assert {ack.command_id for ack in facts.acks} == set(wanted)
    directory = root / "worker" / "files" / "artifacts" / "c2"
    found = {path.name: path.read_text(encoding="utf-8") for path in directory.iterdir()}
    assert found == PARTS
    assert list((root / "worker").rglob("*.tmp")) == []
    with closing(sqlite3.connect(root / "worker" / "worker.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        for table in ("attempts", "results", "events"):
            (count,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()
            assert count == commands
        unreported = database.execute("SELECT count(*) FROM events WHERE NOT reported").fetchone()
        assert unreported == (0,)
        assert database.execute("SELECT count(*) FROM artifacts").fetchone() == (len(PARTS),)


@pytest.mark.requirement("HAR-01")
def test_every_label_is_declared_once() -> None:
    """A label stands at exactly one place."""
    assert len(LABELS) == len(set(LABELS))
    assert all(harness.points.well_formed(label) for label in LABELS)


@pytest.mark.requirement("ATT-11", "OUT-36")
def test_one_life_hits_every_point_but_those_of_recovery(root: Path, endpoint: str) -> None:
    """It hits every point, and leaves no thread, so that its process may fork."""
    hits: list[str] = []
    live(root, endpoint, lambda label, context: hits.append(label))
    assert sorted(set(LABELS) - set(hits)) == sorted(RECOVERY)
    assert threading.active_count() == 1
    check(root, ASKED)


@pytest.mark.requirement("INV-1..INV-6", "INV-11")
@pytest.mark.parametrize("place", LABELS)
def test_a_kill_at_each_point_loses_and_doubles_nothing(
    world: World, root: Path, endpoint: str, place: str
) -> None:
    """Killed at a point and again in its recovery, the worker settles and does fresh work."""
    if place in RECOVERY:
        forked(root, endpoint, kill_at("capability.run.after"))
    status = forked(root, endpoint, kill_at(place))
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL
    forked(root, endpoint, kill_at("recovery.decide.after"))
    assert forked(root, endpoint, ignore) == 0
    check(root, ASKED)
    world.offer(WORKLOAD.fresh)
    assert forked(root, endpoint, ignore) == 0
    check(root, ASKED + 1)
    receipts = len(read_facts(root / "world").receipts)
    assert forked(root, endpoint, ignore) == 0
    assert len(read_facts(root / "world").receipts) == receipts


@pytest.mark.requirement("SES-03")
def test_the_worker_speaks_tcp_too(world: World, root: Path) -> None:
    """The endpoint may be ``http://`` as well as a socket."""
    endpoint = world.open(root / "world", (Coordinator,), WORKLOAD, "tcp")
    assert endpoint.startswith("http://")
    try:
        live(root, endpoint, ignore)
        check(root, ASKED)
    finally:
        world.close_services()
