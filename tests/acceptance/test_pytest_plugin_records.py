"""What ``pytest scenarios/`` leaves: a record, as the command does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pytest_projects import COUNTED, NOT_PINNED, orders, project, run_command, run_pytest


def test_a_record_that_cannot_be_written_is_said_and_stops_nothing(tmp_path: Path) -> None:
    """A root that is read-only ended collecting in an OSError."""
    root = project(tmp_path, counted=COUNTED)
    for way in ([], ["-n", "2"]):
        out = run_pytest(root, "--crash-out=/proc/nowhere", *way, "scenarios")
        assert re.search(r"\b5 passed\b", out), out
        assert out.count("crash-harness: no record is written: ") == 1
        assert "Traceback" not in out
    out = run_pytest(root, "--crash-out=none", "scenarios")
    assert "record: " not in out
    assert not (root / "reports").exists()


@pytest.mark.parametrize("parallel", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_a_failure_leaves_what_the_command_leaves(tmp_path: Path, parallel: list[str]) -> None:
    """A failing item left no record, no image and no page."""
    root = project(tmp_path, orders=orders(NOT_PINNED))
    out = run_pytest(root, *parallel, "-k", "wrong", "scenarios")
    (page,) = re.findall(r"^page: (.+)$", out, re.MULTILINE)
    failure = Path(page).parent
    assert Path(page).exists()
    assert (failure / "images" / "1-end" / "worker").is_dir()
    latest = (root / "reports" / "runs" / "latest").resolve()
    assert failure.parents[1] == latest
    assert f"crash-harness: record: {latest}" in out
    again = run_command(root, "repro", str(failure))
    assert again.returncode == 1, again.stdout + again.stderr
    assert "still broken" in again.stdout


RECOVERY = """
from harness.points import crash_point
from harness.scenario import Scenario
from harness.model.workload import Command, Workload
from harness.oracles.effects import NoEffectTwice
from harness.world.ledger import EffectLedger


def worker(site):
    done = site.worker_dir / "done.txt"
    begun = site.worker_dir / "begun.txt"
    finished = done.read_text().split() if done.exists() else []
    if begun.exists() and not finished:
        crash_point("recovery.scan.before")
    begun.touch()
    for order in site.offered:
        if order.command_id not in finished:
            EffectLedger(site.world_dir).record("charge", order.command_id)
            crash_point("order.charge.after")
            with done.open("a") as file:
                file.write(order.command_id + "\\n")


WRONG = Scenario(
    "wrong",
    worker,
    lambda seed: Workload((Command("o1"),), Command("o2")),
    (NoEffectTwice(),),
    points=("recovery",),
)
"""


def test_what_broke_is_shrunk(tmp_path: Path) -> None:
    """The page of a failure of two crashes says that one is enough, as after the command."""
    root = project(tmp_path, recovery=RECOVERY)
    out = run_pytest(root, "scenarios")
    assert re.search(r"\b2 failed, 2 passed\b", out), out
    folder = root / "reports" / "runs" / "latest" / "failures"
    records = [json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*/*.json")]
    found = {row["schedule"]: row["minimal"]["schedule"] for row in records}
    alone = "order.charge.after#1=kill"
    assert found == {alone: alone, f"{alone} / recovery.scan.before#1=kill": alone}


STOP = """
import os, signal
import pytest


def pytest_runtest_teardown(item):
    if "charge.after" in item.name:
        HOW
"""


@pytest.mark.parametrize(
    ("how", "parallel", "why"),
    [
        ("raise KeyboardInterrupt", [], "interrupted by SIGINT (Ctrl-C)"),
        ("os.killpg(0, signal.SIGINT)", ["-n", "2"], "interrupted by SIGINT (Ctrl-C)"),
        ("pytest.exit('enough')", [], "ended by pytest.exit: enough"),
    ],
    ids=["interrupted", "xdist", "exit"],
)
def test_an_interrupted_run_is_recorded_as_far_as_it_came(
    tmp_path: Path, how: str, parallel: list[str], why: str
) -> None:
    """Ctrl-C in the middle left nothing of what had been found; so does it not, nor an exit."""
    root = project(tmp_path, counted=COUNTED, conftest=STOP.replace("HOW", how))
    out = run_pytest(root, *parallel, "scenarios")
    record = json.loads((root / "reports/runs/latest/results.json").read_text(encoding="utf-8"))
    assert record["interrupted"] == why, out
    assert [row["schedule"] for row in record["experiments"]] == ["", "order.charge.after#1=kill"]
