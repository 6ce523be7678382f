"""Projects with a folder of scenarios, and pytest run on them in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

DEADLINE_S = 240

SCENARIOS = """
from harness.oracles.effects import EveryCommandHasEffect, NoEffectTwice
from harness.points import crash_point
from harness.scenario import Scenario, broken_by
from harness.model.workload import Command, Workload
from harness.world.ledger import EffectLedger


def worker(site, careful):
    done = site.worker_dir / "done.txt"
    finished = done.read_text().split() if done.exists() else []
    ledger = EffectLedger(site.world_dir)
    for order in site.offered:
        if order.command_id in finished:
            continue
        known = {effect.key for effect in ledger.effects()}
        if not (careful and order.command_id in known):
            ledger.record("charge", order.command_id)
        crash_point("order.charge.after", order=order.command_id)
        with done.open("a") as file:
            file.write(order.command_id + "\\n")


def make(name, careful, pin):
    return Scenario(
        name,
        lambda site: worker(site, careful),
        lambda seed: Workload((Command("o1"),), Command("o2")),
        (NoEffectTwice(), EveryCommandHasEffect("charge")),
        pin=pin,
        points=("orders",),
    )


CAREFUL = make("careful", True, broken_by("no-effect-twice") if LIE else Scenario.pin)
CARELESS = make("careless", False, broken_by("no-effect-twice"))
"""


NOT_PINNED = 'WRONG = make("wrong", False, Scenario.pin)\n'
"""A scenario more, which breaks a promise and is pinned to hold."""

COUNTED = """
import os
from pathlib import Path

from harness import Command, EffectLedger, EveryCommandHasEffect, Scenario, Workload, crash_point

LIVES = Path(__file__).with_name("lives.txt")


def worker(site):
    with LIVES.open("a") as file:
        file.write(f"{site.incarnation}\\n")
    ledger = EffectLedger(site.world_dir)
    for order in site.offered:
        crash_point("order.charge.before")
        if order.command_id not in {effect.key for effect in ledger.effects()}:
            ledger.record("charge", order.command_id)
        crash_point("order.charge.after")
        crash_point("order.finish.after")


COUNTED = Scenario(
    name="counted",
    worker=worker,
    workload=lambda seed: Workload((Command("o1"),), fresh=Command("o2")),
    oracles=(EveryCommandHasEffect("charge"),),
    points=("counted",),
    fresh=True,  # so that no sample is compared, which runs some experiments twice
)
"""


def run_pytest(project: Path, *arguments: str) -> str:
    """Run pytest on the scenarios of a project, in a process group of its own.

    Returns:
        What it has printed.
    """
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-W", "error", *arguments],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        start_new_session=True,
    )
    return done.stdout + done.stderr


def run_command(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a project."""
    return subprocess.run(
        [sys.executable, "-m", "harness", *arguments],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def project(tmp_path: Path, **files: str) -> Path:
    """Make a project.

    Args:
        tmp_path: Its root.
        files: Texts of the files of its folder of scenarios, by their names without ``.py``.
    """
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    folder = tmp_path / "scenarios"
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return tmp_path


def orders(more: str = "", *, lie: bool = False) -> str:
    """Return a file of scenarios: one that holds and one that is pinned broken.

    Args:
        more: Lines to add.
        lie: Whether the one that holds is pinned broken, too.
    """
    return SCENARIOS.replace("LIE", str(lie)) + more


def lives_in(file: Path) -> int:
    """Return how many first lives `COUNTED` has had, and begin to count anew.

    Every experiment has one, unless it goes on from the beginning of another; how many later lives
    are shared depends on the times of its files.
    """
    count = file.read_text(encoding="utf-8").split().count("1") if file.exists() else 0
    file.unlink(missing_ok=True)
    return count
