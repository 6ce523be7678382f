"""The worker of the benchmarks: SQLite, one effect per command, safe at every point.

As a program, ``python -m benchmarks.ledger_worker DIR [LABEL]`` lives once in a directory and kills
itself at a crash point: a crash test as one would write it without a harness.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from harness.points import crash_point
from harness.world.ledger import EffectLedger

COMMANDS = ("c1",)
STRUCK = "effect.record.after"


def live(worker_dir: Path, world_dir: Path, commands: tuple[str, ...]) -> None:
    """Do every command that is not done, and end.

    Args:
        worker_dir: Where the database is.
        world_dir: Where the ledger is.
        commands: Their ids.
    """
    ledger = EffectLedger(world_dir)
    with closing(sqlite3.connect(worker_dir / "worker.db", isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.execute("CREATE TABLE IF NOT EXISTS done (command_id TEXT PRIMARY KEY)")
        done = {row[0] for row in database.execute("SELECT command_id FROM done")}
        for command_id in commands:
            if command_id in done:
                continue
            crash_point("effect.record.before", command=command_id)
            if command_id not in {effect.key for effect in ledger.effects()}:
                ledger.record("charge", command_id)
            crash_point("effect.record.after", command=command_id)
            database.execute("INSERT INTO done VALUES (?)", (command_id,))
            crash_point("done.save.after", command=command_id)


def _kill_myself_at(label: str) -> None:
    def strike(reached: str, _context: dict[str, object]) -> None:
        if reached == label:
            os.kill(os.getpid(), signal.SIGKILL)

    from harness import points  # noqa: PLC0415 - only when it is to be struck

    points._hook = strike


if __name__ == "__main__":
    if len(sys.argv) > 2:  # noqa: PLR2004 - the label is optional
        _kill_myself_at(sys.argv[2])
    live(Path(sys.argv[1]), Path(sys.argv[1]), COMMANDS)
