"""``pytest scenarios/``: the same matrix, one item per experiment."""

from __future__ import annotations

import json
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
)
"""


def _counted(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    folder = tmp_path / "scenarios"
    folder.mkdir()
    (folder / "counted.py").write_text(COUNTED, encoding="utf-8")
    return tmp_path, folder / "lives.txt"


def _experiments(file: Path) -> int:
    """Count the first lives: every experiment has one; others are shared where states are equal."""
    count = file.read_text(encoding="utf-8").split().count("1") if file.exists() else 0
    file.unlink(missing_ok=True)
    return count


def test_collecting_starts_nothing_and_a_run_no_more_than_the_command(tmp_path: Path) -> None:
    """Collecting ran the whole tier, and a cold run half as much again as the command."""
    project, lives = _counted(tmp_path)
    out = _pytest(project, "--collect-only")
    assert "crash-harness: 0 incarnations started to collect" in out
    assert not lives.exists()
    assert re.search(r"\b5 passed\b", _pytest(project))
    by_pytest = _experiments(lives)
    file = str(project / "scenarios" / "counted.py")
    command = [sys.executable, "-m", "harness", "run", "--scenarios", file, "-j", "1"]
    subprocess.run(command, cwd=project, capture_output=True, check=True, timeout=DEADLINE_S)
    # The command runs each of them with an interpreter per incarnation, too.
    assert (by_pytest, _experiments(lives)) == (4, 2 * 4)
    out = _pytest(project, "-k", "order.finish")
    assert re.search(r"\b1 passed, 4 deselected\b", out), out
    assert _experiments(lives) == 2


def test_nothing_needs_the_cache_of_pytest(tmp_path: Path) -> None:
    """Without it collecting ended in an AttributeError."""
    project, _ = _counted(tmp_path)
    assert re.search(r"\b5 passed\b", _pytest(project, "-p", "no:cacheprovider"))


def test_a_record_that_cannot_be_written_is_said_and_stops_nothing(tmp_path: Path) -> None:
    """A root that is read-only ended collecting in an OSError."""
    project, _ = _counted(tmp_path)
    out = _pytest(project, "--crash-out", "/proc/nowhere")
    assert re.search(r"\b5 passed\b", out), out
    assert "crash-harness: no record is written: " in out
    assert "Traceback" not in out
    out = _pytest(project, "--crash-out", "none")
    assert "record: " not in out
    assert not (project / "reports").exists()


def test_a_failure_leaves_what_the_command_leaves(tmp_path: Path) -> None:
    """A failing item left no record, no image and no page."""
    project = _project(tmp_path, lie=False)
    file = project / "scenarios" / "orders.py"
    file.write_text(file.read_text(encoding="utf-8") + NOT_PINNED, encoding="utf-8")
    out = _pytest(project)
    (page,) = re.findall(r"^page: (.+)$", out, re.MULTILINE)
    failure = Path(page).parent
    assert Path(page).exists()
    assert (failure / "images" / "1-end" / "worker").is_dir()
    latest = (project / "reports" / "runs" / "latest").resolve()
    assert failure.parents[1] == latest
    assert f"crash-harness: record: {latest}" in out


STOP = """
def pytest_runtest_teardown(item):
    if "charge.after" in item.name:
        raise KeyboardInterrupt
"""


def test_an_interrupted_run_is_recorded_as_far_as_it_came(tmp_path: Path) -> None:
    """Ctrl-C in the middle left nothing of what had been found."""
    project, _ = _counted(tmp_path)
    (project / "scenarios" / "conftest.py").write_text(STOP, encoding="utf-8")
    out = _pytest(project)
    record = json.loads((project / "reports/runs/latest/results.json").read_text(encoding="utf-8"))
    assert record["interrupted"], out
    assert [row["schedule"] for row in record["experiments"]] == ["", "order.charge.after#1=kill"]


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
