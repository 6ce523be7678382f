"""Snapshots and step results in the worker's own database."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import harness.points
from worker_under_test.adapters.sqlite_store import SqliteStore
from worker_under_test.checkpoint import NotFound, Snapshot, StaleSeq
from worker_under_test.ports.step_store import StepResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from worker_under_test.adapters.sqlite_steps import SqliteSteps


class CrashError(BaseException):
    """Stands for a crash: no handler of the code under test takes it."""


def with_steps(root: Path, use: Callable[[SqliteSteps], Awaitable[None]]) -> None:
    """Open the worker's store, use its steps, and close it."""

    async def run() -> None:
        store = SqliteStore(root / "worker.db", init=True)
        await store.open()
        try:
            await use(store.steps)
        finally:
            await store.close()

    asyncio.run(run())


def rows(root: Path) -> tuple[list[tuple[int, str]], list[tuple[str, int]]]:
    """Read number and completions of the snapshots, and the results with their numbers."""
    with closing(sqlite3.connect(root / "worker.db")) as database:
        return (
            database.execute("SELECT seq, done FROM checkpoint_snapshot").fetchall(),
            database.execute("SELECT step_id, seq FROM step_results ORDER BY step_id").fetchall(),
        )


@pytest.mark.requirement("ORC-09", "STO-17", "CP-E2")
def test_snapshot_and_result_are_one_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash in the middle both are missing, later both are there."""

    def hook(label: str, context: dict[str, object]) -> None:
        if label == "snapshot.save.mid" and context["seq"] == 2:
            raise CrashError

    async def use(steps: SqliteSteps) -> None:
        await steps.save_step(Snapshot("r", 1, "running", ["a"]), StepResult("a", {"n": 1}))
        await steps.save_step(Snapshot("r", 2, "running", ["a", "b"]), StepResult("b", {}))

    monkeypatch.setattr(harness.points, "_hook", hook)
    with pytest.raises(CrashError):
        with_steps(tmp_path, use)
    assert rows(tmp_path) == ([(1, '["a"]')], [("a", 1)])


@pytest.mark.requirement("STO-08", "ORC-09")
def test_a_stale_snapshot_takes_its_result_along(tmp_path: Path) -> None:
    """A stale snapshot writes nothing; a step that runs again replaces its result."""

    async def use(steps: SqliteSteps) -> None:
        with pytest.raises(NotFound):
            await steps.load("r")
        await steps.save_step(Snapshot("r", 5, "running", ["a"]), StepResult("a", {}))
        with pytest.raises(StaleSeq):
            await steps.save_step(Snapshot("r", 5, "running", ["a", "b"]), StepResult("b", {}))
        await steps.save_step(Snapshot("r", 6, "running", ["a"]), StepResult("a", {}))
        await steps.save_step(Snapshot("r", 7, "completed", ["a"]), None)
        assert (await steps.load("r")).seq == 7

    with_steps(tmp_path, use)
    assert rows(tmp_path) == ([(7, '["a"]')], [("a", 6)])
