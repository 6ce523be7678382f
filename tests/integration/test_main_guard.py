"""A program that uses the harness by hand: with a main guard, and without."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SCENARIO = """
from harness import Command, EffectLedger, EveryCommandHasEffect, Scenario, Workload, crash_point


def worker(site):
    ledger = EffectLedger(site.world_dir)
    for command in site.offered:
        crash_point("order.charge.before", order=command.command_id)
        ledger.record("charge", command.command_id)


SCENARIO = Scenario(
    "charging",
    worker,
    lambda seed: Workload((Command("o1"),), Command("o2")),
    (EveryCommandHasEffect("charge"),),
)
"""
VERBS = """
from harness import Experiment
with Experiment(SCENARIO) as x:
    x.settle()
    print(x.check().verdict)
"""
SCHEDULE = """
from harness import run_schedule
print(run_schedule(SCENARIO, "order.charge.before=kill").verdict)
"""


def _ran(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    file = folder / "by_hand.py"
    file.write_text(program, encoding="utf-8")
    return subprocess.run(
        [sys.executable, file], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("use", [VERBS, SCHEDULE], ids=["verbs", "schedule"])
def test_program_without_a_main_guard_is_told_so(tmp_path: Path, use: str) -> None:
    """A spawned process imports the main file again; it used to print a traceback of its own."""
    done = _ran(tmp_path, SCENARIO + use)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("Traceback") == 1
    assert done.stderr.splitlines()[-1] == (
        "harness.model.errors.UsageError: put the code that uses the harness below "
        '`if __name__ == "__main__":`; the processes that it starts import the main file of this '
        "program again"
    )


@pytest.mark.parametrize("use", [VERBS, SCHEDULE], ids=["verbs", "schedule"])
def test_program_with_a_main_guard_works(tmp_path: Path, use: str) -> None:
    """The same program below the guard, with its worker in the main file."""
    guarded = '\nif __name__ == "__main__":' + use.replace("\n", "\n    ").rstrip(" ")
    done = _ran(tmp_path, SCENARIO + guarded)
    assert (done.returncode, done.stdout, done.stderr) == (0, "held\n", "")
