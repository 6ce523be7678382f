"""Children on a real machine: found again, known for sure, never started twice."""

from __future__ import annotations

import asyncio
import os
import select
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from process_lives import DEADLINE_S, GATES, TOKEN, Lines, execute, let_go, life, reap, started

import harness.points
from worker_under_test.adapters.local_processes import (
    LocalProcesses,
)
from worker_under_test.capabilities.command import RunCommand
from worker_under_test.domain.command import Command
from worker_under_test.domain.event import EventKind
from worker_under_test.domain.progress import Checkpoint
from worker_under_test.domain.recovery import Decision

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker_under_test.domain.json_value import JsonObject
    from worker_under_test.ports.processes import ProcessIdentity


@pytest.fixture(autouse=True)
def _reap() -> Iterator[None]:
    """Leave no child behind."""
    yield
    reap()


@pytest.mark.requirement("PRC-01", "PRC-02", "PRC-04", "CP-H1..CP-H3")
@pytest.mark.parametrize("saved", [True, False])
def test_a_child_that_outlived_the_worker_is_waited_for(tmp_path: Path, *, saved: bool) -> None:
    """The child is found by its token, whether or not its pid was saved."""

    async def run() -> None:
        child = await started(tmp_path)
        evidence: dict[str, str | int] = {"token": TOKEN}
        if saved:
            evidence |= {"pid": child.pid, "start_time": child.start_time, "boot_id": child.boot_id}
        lines = Lines(dict(evidence))
        going = asyncio.create_task(execute(tmp_path, lines))
        await lines.has_identity()
        let_go(tmp_path)
        event = await going
        assert event is not None
        assert (event.kind, event.body["exit_code"]) == (EventKind.FAILED, 7)
        assert (tmp_path / TOKEN / "ran").read_text(encoding="utf-8") == "\n"

    asyncio.run(run())


@pytest.mark.requirement("PRC-05", "CP-H4")
@pytest.mark.parametrize(
    ("argv", "kind"),
    [
        (["true"], EventKind.SUCCEEDED),
        (["false"], EventKind.FAILED),
        (["/bin/sh", "-c", "kill -9 $PPID"], EventKind.UNKNOWN),
    ],
)
def test_a_child_that_ended_meanwhile_is_known_by_what_it_left(
    tmp_path: Path, argv: list[str], kind: EventKind
) -> None:
    """The child left its exit code, or is unknown; it is not started again."""

    async def run() -> None:
        earlier = life(tmp_path)
        await earlier.prepare(TOKEN)
        await earlier.wait(await earlier.spawn(TOKEN, argv))
        event = await execute(tmp_path, Lines({"token": TOKEN}))
        assert event is not None
        assert event.kind is kind
        assert not (tmp_path / TOKEN / "begun").exists()

    asyncio.run(run())


@pytest.mark.requirement("PRC-04", "CP-B2")
def test_a_child_that_was_never_started_is_started(tmp_path: Path) -> None:
    """A child's directory is made before it, so without one there was no child."""

    async def run() -> None:
        lines = Lines({"token": TOKEN})
        going = asyncio.create_task(execute(tmp_path, lines))
        await lines.has_identity()
        let_go(tmp_path)
        event = await going
        assert event is not None
        assert event.body["exit_code"] == 7
        assert (tmp_path / TOKEN / "begun").exists()

    asyncio.run(run())


@pytest.mark.requirement("PRC-02", "PRC-05", "REC-16")
def test_a_child_that_may_have_been_started_is_not_started(tmp_path: Path) -> None:
    """A directory with nothing in it leaves the outcome unknown."""

    async def run() -> None:
        await LocalProcesses(tmp_path).prepare(TOKEN)
        event = await execute(tmp_path, Lines({"token": TOKEN}))
        assert event is not None
        assert event.kind is EventKind.UNKNOWN
        assert not (tmp_path / TOKEN / "begun").exists()

    asyncio.run(run())


def _set_at(wanted: str, event: asyncio.Event, label: str, _context: dict[str, object]) -> None:
    if label == wanted:
        event.set()


@pytest.mark.requirement("PRC-02", "CAP-10", "ADM-06")
def test_a_worker_that_ends_leaves_its_child_and_a_cancel_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that ends leaves its child, a cancel ends it, and neither waits for it."""

    async def run() -> None:
        for cancelled in (False, True):
            lines = Lines({"token": TOKEN} if cancelled else None)
            lines.cancelled = cancelled
            waits = asyncio.Event()
            hook = partial(_set_at, "process.wait.before", waits)
            monkeypatch.setattr(harness.points, "_hook", hook)
            going = asyncio.create_task(execute(tmp_path, lines))
            async with asyncio.timeout(DEADLINE_S):
                await waits.wait()
            going.cancel()
            async with asyncio.timeout(DEADLINE_S):
                with suppress(asyncio.CancelledError):
                    await going
            found = await life(tmp_path).find(TOKEN)
            assert (found is None) == cancelled

    asyncio.run(run())


@pytest.mark.requirement("ADM-06", "PRC-07")
def test_what_a_child_starts_while_it_is_ended_ends_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a look that missed it there is another one, until nobody is left."""
    forks = "echo >../told; read _ <../go; cat <../held & echo >../told; wait"
    looks = 0
    carriers = LocalProcesses.carriers

    def tells() -> None:
        assert select.select([told], [], [], DEADLINE_S)[0], "the child says nothing"
        os.read(told, 1)

    def look(processes: LocalProcesses, token: str) -> Iterator[ProcessIdentity]:
        nonlocal looks
        found = list(carriers(processes, token))
        looks += 1
        if looks == 2:
            let_go(tmp_path)
            tells()
        yield from found

    processes = life(tmp_path)

    async def run() -> None:
        child = await started(tmp_path, ["/bin/sh", "-c", forks])
        tells()
        monkeypatch.setattr(LocalProcesses, "carriers", look)
        assert await processes.end(child, TOKEN)

    for name in ("told", "held"):
        os.mkfifo(tmp_path / name)
    told = os.open(tmp_path / "told", os.O_RDWR)
    GATES.append(told)
    asyncio.run(run())
    assert looks >= 2
    assert list(carriers(processes, TOKEN)) == []


@pytest.mark.requirement("REC-02", "REC-13", "REC-16", "PRC-04")
@pytest.mark.parametrize(
    ("evidence", "decision"),
    [
        (None, Decision.START),
        ({"token": TOKEN}, Decision.FIND_PROCESS),
        ({"token": ""}, Decision.UNKNOWN),
        ({}, Decision.UNKNOWN),
    ],
)
def test_the_evidence_decides(evidence: JsonObject | None, decision: Decision) -> None:
    """The decision follows from what was saved before the child was started."""
    checkpoint = None if evidence is None else Checkpoint(1, {}, evidence)
    proposal = RunCommand(life(Path())).recover(Command("p1", "command", 1, {}), checkpoint)
    assert proposal.decision is decision
    assert proposal.reason
