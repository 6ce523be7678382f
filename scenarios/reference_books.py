"""The reference worker's durable state, read as books."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.images.digest import opened
from harness.oracles.mailbox.artifacts import read_files
from harness.oracles.mailbox.worker_state import (
    ArtifactRow,
    AttemptRow,
    CheckpointRow,
    DecisionRow,
    InboxRow,
    OutboxRow,
    WorkerState,
)
from scenarios.snapshot_rows import read_snapshots

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

DATABASE = "worker.db"
ARTIFACTS = "files/artifacts"


def read_books(worker_dir: Path) -> WorkerState:
    """Read the books from a worker's directory, in which nothing changes by that."""
    if not (worker_dir / DATABASE).exists():
        return WorkerState()
    with opened(worker_dir / DATABASE) as database:
        return _read(database)


def worker_view(worker_dir: Path) -> tuple[WorkerState, tuple[tuple[str, str], ...]]:
    """Return what a second restart must leave alone: books but for the boot, and files."""
    books = read_books(worker_dir)
    unbooted = WorkerState(0, *(getattr(books, name) for name in _TABLES))
    return unbooted, tuple(read_files(worker_dir / ARTIFACTS))


_TABLES = ("inbox", "attempts", "outbox", "checkpoints", "decisions", "artifacts", "snapshots")


def _read(database: sqlite3.Connection) -> WorkerState:
    tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables == (0,):
        return WorkerState()
    boot = database.execute("SELECT boot FROM identity").fetchone()
    return WorkerState(
        boot=boot[0] if boot else 0,
        inbox=tuple(
            InboxRow(*row)
            for row in database.execute("SELECT command_id, digest FROM inbox ORDER BY position")
        ),
        attempts=tuple(
            AttemptRow(attempt, command, capability, state, bool(result), bool(cancelled), saved)
            for attempt, command, capability, state, result, cancelled, saved in database.execute(
                "SELECT attempt_id, command_id, capability || '/' || version, attempts.state,"
                " attempt_id IN (SELECT attempt_id FROM results),"
                " command_id IN (SELECT command_id FROM cancels),"
                " coalesce((SELECT data ->> 'evidence' FROM checkpoints"
                "           WHERE attempt_id = attempts.attempt_id), '')"
                " FROM attempts JOIN inbox USING (command_id) ORDER BY position"
            )
        ),
        outbox=tuple(
            OutboxRow(event_id, attempt_id, command_id, kind, body, bool(reported))
            for event_id, attempt_id, command_id, kind, body, reported in database.execute(
                "SELECT event_id, attempt_id, command_id, kind, body, reported"
                " FROM events ORDER BY position"
            )
        ),
        checkpoints=tuple(
            CheckpointRow(*row)
            for row in database.execute(
                "SELECT attempt_id, seq FROM checkpoints ORDER BY attempt_id"
            )
        ),
        decisions=tuple(
            DecisionRow(*row)
            for row in database.execute(
                "SELECT boot, attempt_id, decision, reason FROM recovery_decisions ORDER BY id"
            )
        ),
        artifacts=tuple(
            ArtifactRow(*row)
            for row in database.execute(
                "SELECT command_id || '/' || name, attempt_id, sha256 FROM artifacts"
                " ORDER BY command_id, name"
            )
        ),
        snapshots=read_snapshots(database),
    )
