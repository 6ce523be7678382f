"""Snapshots of runs, read from the table that the checkpoint kernel keeps them in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from harness.oracles.mailbox.worker_state import SnapshotRow

if TYPE_CHECKING:
    import sqlite3


def read_snapshots(database: sqlite3.Connection) -> tuple[SnapshotRow, ...]:
    """Read the snapshots that a database holds, if it has come so far as to hold any."""
    known = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'checkpoint_snapshot'")
    if known.fetchone() is None:
        return ()
    rows = database.execute(
        "SELECT run_id, seq, status, done FROM checkpoint_snapshot ORDER BY run_id"
    )
    return tuple(
        SnapshotRow(run_id, seq, status, tuple(json.loads(done)))
        for run_id, seq, status, done in rows
    )
