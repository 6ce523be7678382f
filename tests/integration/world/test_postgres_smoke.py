"""The reference scenario on either database: the same experiments with the same verdicts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

import harness
from harness.world.coordinator.service import DATABASE_VARIABLE

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

RUN_S = 240.0
SCENARIOS = ("reference", "reference-control")


def _smoke(out: Path, database: str) -> list[object]:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "harness",
            "run",
            "reference",
            "reference-control",
            "--out",
            str(out),
        ],
        check=False,
        cwd=Path(harness.__file__).parents[1],
        env={**os.environ, DATABASE_VARIABLE: database},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=RUN_S,
    )
    assert done.returncode == 0, done.stdout.decode()
    record = json.loads((out / "latest" / "results.json").read_text())
    return cast("list[object]", record["experiments"])


def _commits(url: str) -> int:
    with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
        row = connection.execute("SELECT sum(xact_commit) FROM pg_stat_database").fetchone()
    assert row is not None
    return int(row[0])


def test_both_databases_give_the_same_verdicts(tmp_path: Path, postgres_url: str) -> None:
    """The smoke tier has the same list of experiments on both, to the last word of each."""
    on_sqlite = _smoke(tmp_path / "sqlite", "")
    before = _commits(postgres_url)
    on_postgres = _smoke(tmp_path / "postgres", postgres_url)
    assert _commits(postgres_url) - before > 10 * len(on_postgres), "PostgreSQL was hardly used"
    assert on_postgres == on_sqlite
    assert len(on_sqlite) > 1
