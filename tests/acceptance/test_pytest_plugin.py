"""``pytest scenarios/``: the same matrix, one item per experiment."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from pytest_projects import COUNTED, NOT_PINNED, lives_in, orders, project, run_command, run_pytest

from harness.pytest_plugin.by_scenario import scope_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("parallel", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_one_item_per_experiment(tmp_path: Path, parallel: list[str]) -> None:
    """Each experiment is an item, with and without pytest-xdist."""
    out = run_pytest(project(tmp_path, orders=orders()), *parallel, "scenarios")
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
    out = run_pytest(project(tmp_path, orders=orders(lie=True)), "scenarios")
    assert "pinned broken by no-effect-twice, and no schedule is" in out
    assert re.search(r"\b1 failed, 5 passed\b", out), out


PIN = """
[[pin]]
scenario = "NAME"
schedule = "order.charge.after#1=kill"
reason = "to be mended"
date = 2026-11-30
"""


def test_pinned_failure_is_expected(tmp_path: Path) -> None:
    """A failure of the pins file fails nothing, and one that is gone asks to be unpinned.

    As with `crash-harness run`, on the same matrix.
    """
    root = project(tmp_path, orders=orders(NOT_PINNED))
    pins = root / "crash-harness.pins.toml"
    pins.write_text(PIN.replace("NAME", "wrong"), encoding="utf-8")
    out = run_pytest(root, "scenarios")
    assert re.search(r"\b8 passed, 1 xfailed\b", out), out
    pins.write_text(PIN.replace("NAME", "careful"), encoding="utf-8")
    out = run_pytest(root, "scenarios")
    assert re.search(r"\b2 failed, 7 passed\b", out), out
    assert "no longer there, unpin: careful[order.charge.after#1=kill]" in out


def test_a_wrong_pins_file_is_told_and_is_no_traceback(tmp_path: Path) -> None:
    """One that cannot be read ended in a traceback, and a misspelt label matched nothing."""
    root = project(tmp_path, orders=orders())
    pins = root / "crash-harness.pins.toml"
    for text, said in (
        ("pin =", "is not TOML"),
        (PIN.replace("NAME", "careful").replace("charge.after", "charge.aftre"), "charge.after"),
    ):
        pins.write_text(text, encoding="utf-8")
        out = run_pytest(root, "scenarios")
        assert said in out
        assert re.search(r"\b1 error\b", out), out
        assert "items.py" not in out


@pytest.mark.parametrize("tier", ["smoke", pytest.param("full", marks=pytest.mark.nightly)])
def test_collecting_starts_nothing_and_a_run_no_more_than_the_command(
    tmp_path: Path, tier: str
) -> None:
    """Collecting ran the whole tier, and a run half as much again as the command.

    With pytest-xdist every process that had an item of a scenario explored it anew.
    """
    root = project(tmp_path, counted=COUNTED)
    lives = root / "scenarios" / "lives.txt"
    tier = f"--crash-tier={tier}"
    out = run_pytest(root, tier, "--collect-only", "scenarios")
    assert "crash-harness: 0 incarnations started for collection" in out
    assert lives_in(lives) == 0
    run_command(root, "run", "-j", "1", tier.replace("crash-", ""))
    by_command = lives_in(lives)
    assert by_command > 0
    for way in ([], [], ["-n", "2"]):  # cold, with the cache of pytest, and in two processes
        out = run_pytest(root, tier, *way, "scenarios")
        assert " passed" in out, out
        assert "failed" not in out, out
        assert lives_in(lives) == by_command
    out = run_pytest(root, tier, "-k", "order.finish", "scenarios")
    assert re.search(r"\b1 passed, \d deselected\b", out), out
    assert 0 < lives_in(lives) < by_command


def test_xdist_keeps_a_scenario_together_and_nothing_else() -> None:
    """Items of a scenario share what it has found; other tests are handed out one by one."""
    assert scope_of("scenarios/a.py::x[control]", "scenarios/") == "scenarios/a.py::x"
    assert scope_of("scenarios/a.py::x[p#1=kill]", "scenarios/") == "scenarios/a.py::x"
    for other in (
        "tests/test_a.py::test[1]",
        "scenarios/test_a.py::test_b",
        "scenariosx/a.py::x[1]",
    ):
        assert scope_of(other, "scenarios/") == other


def test_nothing_needs_the_cache_of_pytest(tmp_path: Path) -> None:
    """Without it collecting ended in an AttributeError."""
    root = project(tmp_path, counted=COUNTED)
    assert re.search(r"\b5 passed\b", run_pytest(root, "-p", "no:cacheprovider", "scenarios"))


def test_what_failed_last_is_found_again(tmp_path: Path) -> None:
    """The names of items are the same each time, so ``--lf`` and a node id select one."""
    root = project(tmp_path, orders=orders(NOT_PINNED))
    run_pytest(root, "scenarios")
    assert (root / ".pytest_cache").is_dir(), "the cache is another run's, too"
    item = "scenarios/orders.py::wrong[order.charge.after#1=kill]"
    for way in (["--lf", "scenarios"], [item]):
        out = run_pytest(root, *way)
        assert f"{item} FAILED" in out, out
        assert "passed" not in out, out


UNDECLARED = NOT_PINNED + "from dataclasses import replace\nWRONG = replace(WRONG, points=())\n"


def test_a_strike_without_an_item_is_told_by_the_scenario(tmp_path: Path) -> None:
    """What broke at a point that nobody had declared was green; so was all else with ``-k holds``.

    A strike at such a point has no item, since there was nothing to collect it from.
    """
    root = project(tmp_path, orders=orders(UNDECLARED))
    out = run_pytest(root, "-k", "wrong", "scenarios")
    assert re.search(r"\b1 failed, 1 passed, 6 deselected\b", out), out
    assert "broken: wrong[order.charge.after#1=kill]" in out
    (root / "scenarios" / "orders.py").write_text(orders(NOT_PINNED), encoding="utf-8")
    out = run_pytest(root, "-k", "holds and wrong", "scenarios")
    assert re.search(r"\b1 failed, 8 deselected\b", out), out


PLUGIN = ".pytest_plugin"

LATE = """
from harness import Command, EffectLedger, NoEffectTwice, Scenario, Workload, crash_point


def worker(site):
    done = site.worker_dir / "done.txt"
    finished = done.read_text().split() if done.exists() else []
    ledger = EffectLedger(site.world_dir)
    for order in site.offered:
        if order.command_id not in finished:
            known = {effect.key for effect in ledger.effects()}
            if order.command_id == "o2" or order.command_id not in known:
                ledger.record("charge", order.command_id)
            crash_point("order.charge.after", order=order.command_id)
            with done.open("a") as file:
                file.write(order.command_id + "\\n")


LATE = Scenario(
    name="late",
    worker=worker,
    workload=lambda seed: Workload((Command("o1"), Command("o2")), fresh=Command("o3")),
    oracles=(NoEffectTwice(),),
    points=("late",),
)
"""


def test_the_rest_of_a_tier_tells_of_what_has_no_item(tmp_path: Path) -> None:
    """A strike at a later hit has no item; the tier's tells of it, and of no other."""
    root = project(tmp_path, late=LATE)
    out = run_pytest(root, "--crash-tier=full", "scenarios")
    assert re.search(r"^FAILED .*late\[full\]", out, re.MULTILINE), out
    assert re.search(r"\b1 failed, 3 passed\b", out), out
    assert "broken: late[order.charge.after[order=o2]#1=kill]" in out


def test_two_scenarios_of_one_name_are_refused(tmp_path: Path) -> None:
    """The second was given the results of the first."""
    root = project(tmp_path, counted=COUNTED, twin=COUNTED)
    out = run_pytest(root, "scenarios")
    assert "two scenarios are named 'counted'" in out
    assert re.search(r"\b1 error\b", out), out


def test_a_scenario_that_is_also_in_a_list_is_collected_once(tmp_path: Path) -> None:
    """It had every item twice."""
    root = project(tmp_path, counted=COUNTED + "ALL = [COUNTED]\n")
    assert re.search(r"\b5 passed\b", run_pytest(root, "scenarios"))


MEMBERS = """
from dataclasses import replace

ONE = make("one", True, Scenario.pin)
ONE = replace(ONE, together="group", points=("orders", "other"))
"""
OTHER = """
from harness.points import crash_point


def elsewhere():
    crash_point("other.point.after")
"""


def test_points_of_a_group_are_judged_when_all_of_it_is_collected(tmp_path: Path) -> None:
    """A point that no scenario of a group reached was green in pytest, and not in the command.

    Of a part of the folder nothing can be said, as others may be of the group.
    """
    root = project(tmp_path, orders=orders(MEMBERS), other=OTHER)
    out = run_pytest(root, "-k", "one", "scenarios")
    assert "other.point.after is declared and was never reached" in out
    out = run_pytest(root, "-k", "one", "scenarios/orders.py")
    assert "failed" not in out, out


def test_failure_is_told_with_the_command_that_runs_it_again(tmp_path: Path) -> None:
    """The command works from the folder in which pytest was called; the story is told before."""
    root = project(tmp_path, orders=orders(NOT_PINNED))
    out = run_pytest(root, "scenarios")
    assert re.search(r"\b1 failed, 8 passed\b", out), out
    assert "incarnation 1: killed by SIGKILL at order.charge.after#1 (" in out
    assert "incarnation 2: exited with code 0, after order.charge.after" in out
    (again,) = re.findall(r"crash-harness (run --scenarios scenarios/orders\.py .+)", out)
    done = run_command(root, *shlex.split(again))
    assert done.returncode == 1, done.stdout + done.stderr


def test_plugin_imports_nothing_heavy_at_start(tmp_path: Path) -> None:
    """Where no scenario is collected, pytest loads of the harness the hooks alone."""
    (tmp_path / "test_other.py").write_text("def test_other(): pass\n", encoding="utf-8")
    program = (
        "import sys, pytest\n"
        "code = pytest.main(sys.argv[1:])\n"
        "print(*sorted(sys.modules))\n"
        "raise SystemExit(code)"
    )
    light = {f"harness{part}" for part in ("", PLUGIN, f"{PLUGIN}.hooks", f"{PLUGIN}.settings")}
    heavy = {"aiohttp", "click", "dill", "multiprocess", "psutil", "xdist.scheduler"}
    for arguments in (["--version"], ["-p", "no:cacheprovider", "test_other.py"]):
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        loaded = set(done.stdout.splitlines()[-1].split())
        assert "pytest" in loaded
        assert arguments == ["--version"] or "harness.pytest_plugin.hooks" in loaded
        assert {name for name in loaded if name.split(".")[0] == "harness"} <= light
        assert not loaded & heavy
