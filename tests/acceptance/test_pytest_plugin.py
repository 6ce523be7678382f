"""``pytest scenarios/``: the same matrix, one item per experiment."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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


def _pytest(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-W", "error", *arguments, "scenarios"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    return done.stdout + done.stderr


def _project(tmp_path: Path, *, lie: bool) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    folder = tmp_path / "scenarios"
    folder.mkdir()
    text = SCENARIOS.replace("LIE", str(lie))
    (folder / "orders.py").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("parallel", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_one_item_per_experiment(tmp_path: Path, parallel: list[str]) -> None:
    """Each experiment is an item, with and without pytest-xdist."""
    out = _pytest(_project(tmp_path, lie=False), *parallel)
    for item in (
        "careful[control]",
        "careful[order.charge.after#1=kill]",
        "careful[holds]",
        "careless[order.charge.after#1=kill]",
        "careless[broken:no-effect-twice]",
    ):
        assert item in out, out
    assert re.search(r"\b6 passed\b", out), out


def test_pin_that_does_not_match_fails(tmp_path: Path) -> None:
    """A worker that is pinned broken and holds fails its summary item, and nothing else."""
    out = _pytest(_project(tmp_path, lie=True))
    assert "pinned broken by no-effect-twice, and no schedule is" in out
    assert re.search(r"\b1 failed, 5 passed\b", out), out


PIN = """
[[pin]]
scenario = "NAME"
schedule = "order.charge.after#1=kill"
reason = "to be mended"
date = 2026-11-30
"""


def test_failure_is_told_with_the_command_that_runs_it_again(tmp_path: Path) -> None:
    """The command works from the folder in which pytest was called."""
    project = _project(tmp_path, lie=False)
    file = project / "scenarios" / "orders.py"
    file.write_text(file.read_text(encoding="utf-8") + NOT_PINNED, encoding="utf-8")
    out = _pytest(project)
    assert re.search(r"\b1 failed, 8 passed\b", out), out
    (again,) = re.findall(r"crash-harness (run --scenarios scenarios/orders\.py .+)", out)
    done = subprocess.run(
        [sys.executable, "-m", "harness", *shlex.split(again)],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr


NOT_PINNED = 'WRONG = make("wrong", False, Scenario.pin)\n'


def test_pinned_failure_is_expected(tmp_path: Path) -> None:
    """A failure of the pins file fails nothing, and one that is gone asks to be unpinned.

    As with `crash-harness run`, on the same matrix.
    """
    project = _project(tmp_path, lie=False)
    file = project / "scenarios" / "orders.py"
    file.write_text(file.read_text(encoding="utf-8") + NOT_PINNED, encoding="utf-8")
    pins = project / "crash-harness.pins.toml"
    pins.write_text(PIN.replace("NAME", "wrong"), encoding="utf-8")
    out = _pytest(project)
    assert re.search(r"\b8 passed, 1 xfailed\b", out), out
    pins.write_text(PIN.replace("NAME", "careful"), encoding="utf-8")
    out = _pytest(project)
    assert re.search(r"\b2 failed, 7 passed\b", out), out
    assert "no longer there, unpin: careful[order.charge.after#1=kill]" in out


def test_plugin_imports_nothing_heavy_at_start() -> None:
    """Without scenarios the plugin costs no import of the engine."""
    program = (
        "import sys; import harness.pytest_plugin.hooks; "
        "print([m for m in sys.modules if m.split('.')[0] in "
        "('aiohttp', 'rich', 'click', 'multiprocess', 'dill', 'psutil', 'faker', 'hypothesis', "
        "'asyncio', 'sqlite3')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
