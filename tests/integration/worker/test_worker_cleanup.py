"""Clean-up on a real store and real files."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import harness.points
from worker_under_test.adapters.local_file_space import LocalFileSpace
from worker_under_test.adapters.sqlite_store import SqliteStore
from worker_under_test.application.cleanup import CleanUp
from worker_under_test.domain.attempt import AttemptState
from worker_under_test.domain.command import Command
from worker_under_test.domain.event import Event, EventKind
from worker_under_test.domain.recovery import Decision, RecoveryDecision
from worker_under_test.ports.local_store import Acceptance

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from worker_under_test.domain.json_value import JsonObject
    from worker_under_test.domain.progress import Progress


class CrashError(Exception):
    """Stands for a crash."""


class SilentReporter:
    """A reporter that keeps nothing."""

    attempt_id = "cleanup"
    cancelled = False
    checkpoint = None

    async def __call__(self, progress: Progress, evidence: JsonObject | None = None) -> None:
        """Take a report."""


@dataclass
class Place:
    """A worker's directory with its store and its file space."""

    root: Path
    store: SqliteStore
    files: LocalFileSpace

    def leave(self, command_id: str) -> None:
        """Put two temporary files and a published one there, as an attempt would."""
        directory = self.root / "files" / "artifacts" / command_id
        directory.mkdir(parents=True)
        for name in ("p.a-1.tmp", "q.a-1.tmp", "published"):
            (directory / name).write_text("half", encoding="utf-8")

    def left(self) -> dict[str, int]:
        """Return how many files each command still has."""
        directory = self.root / "files" / "artifacts"
        return {path.name: len(list(path.iterdir())) for path in sorted(directory.iterdir())}

    async def bring_to(self, command_id: str, state: AttemptState, *, reported: bool) -> None:
        """Bring an attempt at a command to a state."""
        attempt_id = f"a-{command_id}"
        command = Command(command_id, "export", 1, {})
        await self.store.accept(command, attempt_id)
        if state is AttemptState.PENDING:
            return
        await self.store.start(attempt_id, acknowledged=True)
        if state is AttemptState.RECOVERING:
            found = AttemptState.RUNNING
            decision = Decision.RESUME
            await self.store.decide(
                RecoveryDecision(1, attempt_id, command_id, found, None, decision, "why")
            )
        elif state is not AttemptState.RUNNING:
            kind = EventKind(state.value.lower())
            event = Event(f"e-{command_id}", command_id, attempt_id, kind, {})
            await self.store.finish(event, ())
            if reported:
                await self.store.mark_reported(event)

    async def clean_up(self) -> None:
        """Do what ``control.cleanup`` does."""
        await CleanUp(self.files, self.store).run(SilentReporter())


@asynccontextmanager
async def place(root: Path) -> AsyncIterator[Place]:
    """Give a place, and close its store at the end."""
    store = SqliteStore(root / "worker.db", init=True)
    try:
        await store.open()
        yield Place(root, store, LocalFileSpace(root / "files"))
    finally:
        await store.close()


def database_files(root: Path) -> set[str]:
    """Return the names of what belongs to the database."""
    return {path.name for path in root.glob("worker.db*")}


@pytest.mark.requirement("CLN-01", "CLN-02")
@pytest.mark.parametrize(
    ("state", "reported", "stays"),
    [
        (AttemptState.PENDING, False, True),
        (AttemptState.RUNNING, False, True),
        (AttemptState.RECOVERING, False, True),
        (AttemptState.UNKNOWN, True, True),
        (AttemptState.SUCCEEDED, False, True),
        (AttemptState.SUCCEEDED, True, False),
        (AttemptState.FAILED, True, False),
        (AttemptState.CANCELLED, True, False),
    ],
)
def test_only_what_is_over_and_reported_is_removed(
    tmp_path: Path, state: AttemptState, reported: bool, stays: bool
) -> None:
    """Open and unknown attempts and unsent events keep their temporary files."""

    async def run() -> None:
        async with place(tmp_path) as here:
            await here.bring_to("c1", state, reported=reported)
            here.leave("c1")
            here.leave("nobody's")
            await here.clean_up()
            assert here.left() == {"c1": 3 if stays else 1, "nobody's": 1}

    asyncio.run(run())


@pytest.mark.requirement("CLN-03", "CLN-05", "CP-G7")
@pytest.mark.parametrize("crash_place", ["cleanup.scan.before", "cleanup.remove.mid"])
def test_a_clean_up_that_crashed_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash_place: str
) -> None:
    """The second clean-up does the rest, a third one finds nothing, and the rows stay."""

    async def run() -> None:
        async with place(tmp_path) as here:
            await here.bring_to("c1", AttemptState.SUCCEEDED, reported=True)
            here.leave("c1")

            def hook(label: str, context: dict[str, object]) -> None:
                if label == crash_place:
                    raise CrashError(label)

            with monkeypatch.context() as patch:
                patch.setattr(harness.points, "_hook", hook)
                with pytest.raises(CrashError):
                    await here.clean_up()
            assert here.left()["c1"] == (2 if crash_place.endswith("mid") else 3)
            for _ in range(2):
                await here.clean_up()
                assert here.left() == {"c1": 1}
            assert database_files(tmp_path) >= {
                "worker.db",
                "worker.db-wal",
                "worker.db.lock",
            }

    asyncio.run(run())


@pytest.mark.requirement("INB-16", "CLN-05", "ATT-10")
def test_an_old_command_that_comes_again_after_a_clean_up_is_a_repeat(tmp_path: Path) -> None:
    """The row that tells repeats apart is never cleaned up."""

    async def run() -> None:
        async with place(tmp_path) as here:
            await here.bring_to("c1", AttemptState.SUCCEEDED, reported=True)
            await here.clean_up()
            again = await here.store.accept(Command("c1", "export", 1, {}), "another")
            assert (again.outcome, again.attempt_id) == (Acceptance.REPEATED, "a-c1")
            assert await here.store.unfinished() == []

    asyncio.run(run())


@pytest.mark.requirement("CLN-04")
def test_a_file_whose_attempt_begins_during_the_look_is_kept(tmp_path: Path) -> None:
    """The store is asked after the look, so what was found and is alive is known there."""

    async def run() -> None:
        async with place(tmp_path) as here:
            here.leave("c1")
            look = here.files.leftovers

            async def begins_meanwhile() -> object:
                found = await look()
                await here.bring_to("c1", AttemptState.RUNNING, reported=False)
                return found

            here.files.leftovers = begins_meanwhile  # type: ignore[method-assign,assignment]
            await here.clean_up()
            assert here.left() == {"c1": 3}

    asyncio.run(run())
