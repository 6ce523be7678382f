"""The real command, as a process."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DEADLINE_S = 240


@dataclass(frozen=True)
class Ran:
    """A command that has ended.

    Attributes:
        code: Its exit code.
        out: Its standard output.
        err: Its standard error.
    """

    code: int
    out: str
    err: str


class Command:
    """Runs ``crash-harness`` in the repository, with records in a folder of its own."""

    def __init__(self, out: Path) -> None:
        self.out = out

    def __call__(self, *arguments: str) -> Ran:
        """Run it to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "harness", *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    def run(self, *arguments: str) -> Ran:
        """Run ``crash-harness run``."""
        return self("run", "--out", str(self.out), *arguments)

    def record(self) -> dict[str, Any]:
        """Return the latest record."""
        text = (self.out / "latest" / "results.json").read_text(encoding="utf-8")
        record: dict[str, Any] = json.loads(text)
        return record


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Give the command."""
    return Command(tmp_path / "runs")
