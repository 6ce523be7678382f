"""The local store on a real file."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING

import pytest

import harness.points
from worker_under_test.adapters.sqlite_schema import SCHEMA_VERSION
from worker_under_test.adapters.sqlite_store import SqliteStore
from worker_under_test.domain.artifact import Artifact
from worker_under_test.domain.attempt import Attempt, AttemptState
from worker_under_test.domain.command import Command
from worker_under_test.domain.errors import DomainError
from worker_under_test.domain.event import Event, EventKind
from worker_under_test.domain.progress import Checkpoint
from worker_under_test.domain.recovery import Decision, RecoveryDecision
from worker_under_test.ports.local_store import Acceptance, Started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

COMMAND = Command("c1", "compute", 1, {"seed": "s", "rounds": 2})
ATTEMPT = Attempt("a1", COMMAND)
EVENT = Event("e1", "c1", "a1", EventKind.SUCCEEDED, {"output": "ü"})
ARTIFACT = Artifact("p", "artifacts/c1/p", 1, "00")


class CrashError(Exception):
    """Stands for a crash inside a transaction."""


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[SqliteStore]:
    """Open a store, and close it at the end."""
    store = SqliteStore(path / "worker.db", init=True)
    try:
        await store.open()
        yield store
    finally:
        await store.close()


def rows(path: Path, table: str) -> list[tuple[object, ...]]:
    """Read a table with a connection of our own."""
    with closing(sqlite3.connect(path / "worker.db")) as database:
        return database.execute(f"SELECT * FROM {table}").fetchall()


def crash_at(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Have a crash point raise instead of doing nothing."""

    def hook(label: str, context: dict[str, object]) -> None:
        if label == place:
            raise CrashError(place)

    monkeypatch.setattr(harness.points, "_hook", hook)


@pytest.mark.requirement("ATT-01", "IDN-04")
def test_the_settings_are_durable_and_the_thread_ends(tmp_path: Path) -> None:
    """WAL, a sync at each commit, foreign keys; no thread after close."""

    async def run() -> None:
        before = threading.active_count()
        async with opened(tmp_path):
            with closing(sqlite3.connect(tmp_path / "worker.db")) as database:
                assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
                assert database.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        assert threading.active_count() == before

    asyncio.run(run())


@pytest.mark.requirement("IDN-06")
def test_the_identity_is_kept_and_starts_are_counted(tmp_path: Path) -> None:
    """Five starts have the identity of the first one."""

    async def run() -> None:
        for boot in range(1, 6):
            async with opened(tmp_path) as store:
                life = await store.begin_incarnation(f"w{boot}")
                assert (life.instance_id, life.boot) == ("w1", boot)

    asyncio.run(run())


@pytest.mark.requirement("INB-02", "INB-03", "INB-10", "INB-12")
def test_a_command_is_accepted_once(tmp_path: Path) -> None:
    """New, repeated and conflicting commands are told apart, also after a restart."""

    async def run() -> None:
        async with opened(tmp_path) as store:
            assert (await store.accept(COMMAND, "a1")).outcome is Acceptance.ACCEPTED
        other = Command("c1", "compute", 2, {})
        async with opened(tmp_path) as store:
            repeated = await store.accept(COMMAND, "a2")
            assert (repeated.outcome, repeated.attempt_id) == (Acceptance.REPEATED, "a1")
            assert (await store.accept(other, "a3")).outcome is Acceptance.CONFLICTING
            (found,) = await store.unfinished()
            assert found.attempt == ATTEMPT
            assert found.state is AttemptState.PENDING
        assert len(rows(tmp_path, "inbox")) == len(rows(tmp_path, "attempts")) == 1

    asyncio.run(run())


@pytest.mark.requirement("INB-02", "INB-07", "CP-A2", "CP-A3")
@pytest.mark.parametrize("place", ["inbox.save.mid", "inbox.commit.before"])
def test_inbox_and_attempt_are_saved_together_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """No half is saved, and the connection is of use afterwards."""

    async def run() -> None:
        async with opened(tmp_path) as store:
            crash_at(monkeypatch, place)
            with pytest.raises(CrashError):
                await store.accept(COMMAND, "a1")
            monkeypatch.undo()
            assert rows(tmp_path, "inbox") == rows(tmp_path, "attempts") == []
            assert (await store.accept(COMMAND, "a2")).outcome is Acceptance.ACCEPTED

    asyncio.run(run())


@pytest.mark.requirement("ATT-02", "INV-6", "CP-C1", "CP-C2")
@pytest.mark.parametrize("place", ["result.save.mid", "result.commit.before"])
def test_result_and_event_are_saved_together_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Result, event, artifacts and state are saved together or not at all."""

    async def run() -> None:
        async with opened(tmp_path) as store:
            await store.accept(COMMAND, "a1")
            await store.start("a1", acknowledged=True)
            crash_at(monkeypatch, place)
            with pytest.raises(CrashError):
                await store.finish(EVENT, (ARTIFACT,))
            monkeypatch.undo()
            assert rows(tmp_path, "results") == rows(tmp_path, "artifacts") == []
            assert await store.unreported() == []
            assert [each.state for each in await store.unfinished()] == [AttemptState.RUNNING]
            await store.finish(EVENT, (ARTIFACT,))
            assert await store.unreported() == [EVENT]
            assert len(rows(tmp_path, "results")) == len(rows(tmp_path, "artifacts")) == 1
            assert await store.unfinished() == []

    asyncio.run(run())


@pytest.mark.requirement("ATT-09", "ATT-10")
def test_a_finished_attempt_stays_finished(tmp_path: Path) -> None:
    """A finished attempt is neither started nor finished a second time."""

    async def run() -> None:
        async with opened(tmp_path) as store:
            await store.accept(COMMAND, "a1")
            await store.start("a1", acknowledged=False)
            await store.finish(EVENT, ())
            with pytest.raises(DomainError):
                await store.start("a1", acknowledged=False)
            with pytest.raises(DomainError):
                await store.finish(Event("e2", "c1", "a1", EventKind.FAILED, {}), ())
            assert await store.unreported() == [EVENT]

    asyncio.run(run())


@pytest.mark.requirement("INV-7", "CAP-06")
def test_a_checkpoint_number_never_goes_down(tmp_path: Path) -> None:
    """A checkpoint with an equal or a lower number changes nothing."""

    async def run() -> None:
        async with opened(tmp_path) as store:
            await store.accept(COMMAND, "a1")
            saved = [
                await store.save_checkpoint(ATTEMPT, Checkpoint(seq, {}, {"seq": seq}))
                for seq in (1, 3, 3, 2, 4)
            ]
            assert saved == [True, True, False, False, True]
            last = await store.start("a1", acknowledged=False)
            assert last == Started(running=True, checkpoint=Checkpoint(4, {}, {"seq": 4}))

    asyncio.run(run())


@pytest.mark.requirement("REC-16")
def test_a_checkpoint_that_cannot_be_read_is_one_without_evidence(tmp_path: Path) -> None:
    """The checkpoint's number stays, and its content counts for nothing."""

    async def run() -> None:
        async with opened(tmp_path) as store:
            await store.accept(COMMAND, "a1")
            await store.save_checkpoint(ATTEMPT, Checkpoint(5, {}, {"part": 1}))
        with closing(sqlite3.connect(tmp_path / "worker.db")) as database, database:
            database.execute("UPDATE checkpoints SET data = '{broken'")
        async with opened(tmp_path) as store:
            started = await store.start("a1", acknowledged=False)
            assert started.checkpoint == Checkpoint(5, {}, {})

    asyncio.run(run())


@pytest.mark.requirement("REC-17")
def test_a_decision_is_saved_with_the_state_it_leads_to(tmp_path: Path) -> None:
    """A begun attempt is RECOVERING with its decision; one to be started stays PENDING."""

    async def run() -> None:
        async with opened(tmp_path) as store:
            await store.accept(COMMAND, "a1")
            for found, chosen, after in [
                (AttemptState.PENDING, Decision.START, AttemptState.PENDING),
                (AttemptState.RUNNING, Decision.RECOMPUTE, AttemptState.RECOVERING),
                (AttemptState.RECOVERING, Decision.RECOMPUTE, AttemptState.RECOVERING),
            ]:
                if found is AttemptState.RUNNING:
                    await store.start("a1", acknowledged=False)
                await store.decide(RecoveryDecision(2, "a1", "c1", found, None, chosen, "why"))
                assert [each.state for each in await store.unfinished()] == [after]
        assert len(rows(tmp_path, "recovery_decisions")) == 3

    asyncio.run(run())


@pytest.mark.requirement("OUT-31", "OUT-37", "ATT-04")
def test_events_come_in_the_order_of_saving_until_they_are_marked(tmp_path: Path) -> None:
    """Events stay unchanged over a restart and are gone when they are marked."""

    async def run() -> None:
        events = []
        async with opened(tmp_path) as store:
            for number in (3, 1, 2):
                command = Command(f"c{number}", "compute", 1, {})
                event = Event(f"e{number}", f"c{number}", f"a{number}", EventKind.FAILED, {"é": 1})
                await store.accept(command, f"a{number}")
                await store.start(f"a{number}", acknowledged=False)
                await store.finish(event, ())
                events.append(event)
        async with opened(tmp_path) as store:
            assert await store.unreported() == events
            await store.mark_reported(events[0])
            assert await store.unreported() == events[1:]

    asyncio.run(run())


@pytest.mark.requirement("ADM-01", "INB-02")
def test_transactions_of_many_tasks_do_not_mix(tmp_path: Path) -> None:
    """Fifty tasks share one connection, and each transaction is whole."""

    async def run() -> None:
        async with opened(tmp_path) as store:
            commands = [Command(f"c{number}", "compute", 1, {}) for number in range(50)]
            await asyncio.gather(*(store.accept(each, f"a-{each.command_id}") for each in commands))
            assert len(await store.unfinished()) == 50

    asyncio.run(run())


@pytest.mark.requirement("CAP-10", "INB-02")
def test_a_cancelled_transaction_leaves_none_open(tmp_path: Path) -> None:
    """Wherever a transaction is cancelled, the next one works."""

    async def run() -> None:
        async with opened(tmp_path) as store:
            for steps in range(1, 30):
                task = asyncio.create_task(
                    store.accept(Command(f"c{steps}", "compute", 1, {}), f"a{steps}")
                )
                for _ in range(steps):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait((task,))
            await store.accept(COMMAND, "last")
        assert len(rows(tmp_path, "inbox")) == len(rows(tmp_path, "attempts"))

    asyncio.run(run())
