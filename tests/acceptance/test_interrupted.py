"""A run that ends before it is through: what had finished is recorded, and it says so."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import psutil
import pytest
from acceptance_command import DEADLINE_S, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from acceptance_command import Command

WORKER = """
import signal
from pathlib import Path

from harness.oracles.effects import NoEffectTwice
from harness.points import crash_point
from harness.scenario import Scenario
from harness.model.workload import Command, Workload
from harness.world.ledger import EffectLedger


def worker(site):
    \"\"\"Charge twice after a crash at one point, and never come back after one at the next.\"\"\"
    done, finishing = site.worker_dir / "done.txt", site.worker_dir / "finishing"
    if finishing.exists():
        Path(__file__).with_name("stuck").write_text("stuck")
        signal.pause()
    crash_point("order.scan.before")
    if done.exists():
        return
    EffectLedger(site.world_dir).record("charge", "o1")
    crash_point("order.charge.after")
    finishing.touch()
    crash_point("order.finish.before")
    finishing.unlink()
    done.touch()


ORDERS = Scenario(
    name="orders",
    worker=worker,
    workload=lambda seed: Workload((Command("o1"),), fresh=Command("o2")),
    oracles=(NoEffectTwice(),),
    points=("shop",),
    deadline_s=500,
)
"""
BROKEN = "order.charge.after#1=kill"
TWICE = f"order.scan.before#1=kill / {BROKEN}"


@dataclass(frozen=True)
class Interrupted:
    """A run that has ended.

    Attributes:
        code: Its exit code.
        out: Its standard output.
        err: Its standard error.
        left: Processes below it that did not end with it.
        root: Directory that it was given for workspaces.
    """

    code: int
    out: str
    err: str
    left: list[psutil.Process]
    root: Path


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Give the worker, in a folder of its own, with the pipe by which it says that it is stuck."""
    folder = tmp_path / "shop"
    folder.mkdir()
    os.mkfifo(folder / "stuck")
    (folder / "shop.py").write_text(WORKER, encoding="utf-8")
    return folder / "shop.py"


def run_until_stuck(
    command: Command, shop: Path, end: Callable[[psutil.Process], None]
) -> Interrupted:
    """Run the scenario on one lane; end it when the experiment after the broken one is stuck."""
    root = command.out.parent / "root"
    root.mkdir()
    reports = ["--report", "html,junit,markdown,annotations,ndjson"]
    places = ["--scenarios", str(shop), "--out", str(command.out), "--root", str(root)]
    pipe = os.open(shop.with_name("stuck"), os.O_RDONLY | os.O_NONBLOCK)
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", "run", *places, "--jobs", "1", *reports],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        assert poll.poll(DEADLINE_S * 1000), "no experiment was stuck"
        known = psutil.Process(process.pid)
        family = known.children(recursive=True)
        assert family
        end(known)
        out, err = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
        os.close(pipe)
    _, left = psutil.wait_procs(family, timeout=DEADLINE_S)
    return Interrupted(process.returncode, out, err, left, root)


def check_what_is_left(command: Command, ran: Interrupted, why: str) -> dict[str, Any]:
    """See that nothing lives on, and that every report says why; return the record."""
    assert "Traceback" not in ran.err
    assert ran.left == []
    assert list(ran.root.iterdir()) == []
    record = command.record()
    assert why in record["interrupted"]
    assert record["totals"]["exit_code"] == ran.code
    assert [(row["schedule"], row["verdict"]) for row in record["experiments"]] == [
        ("", "held"),
        ("order.scan.before#1=kill", "held"),
        (BROKEN, "broken"),
    ]
    (scenario,) = record["scenarios"]
    assert (scenario["finished"], scenario["as_pinned"]) == (False, False)
    latest = command.out / "latest"
    for page in ("report.html", "summary.md", "annotations.txt", "junit.xml"):
        assert why in (latest / page).read_text(encoding="utf-8"), page
    assert f"The run was interrupted by {why}" in ran.out
    errors = ET.parse(latest / "junit.xml").getroot().iter("error")
    assert "interrupted" in [error.get("type") for error in errors]
    events = (latest / "events.ndjson").read_text(encoding="utf-8").splitlines()
    assert json.loads(events[-1])["event"] == "run_finished"
    return record


@pytest.mark.parametrize(
    ("signals", "code", "why"),
    [
        ([signal.SIGINT], 130, "SIGINT"),
        ([signal.SIGTERM], 143, "SIGTERM"),
        ([signal.SIGINT, signal.SIGTERM], 130, "SIGINT"),
        ([signal.SIGTERM, signal.SIGTERM], 143, "SIGTERM"),
    ],
    ids=str,
)
def test_what_had_finished_is_recorded(
    command: Command, shop: Path, signals: list[signal.Signals], code: int, why: str
) -> None:
    """Ctrl-C or a stop by a CI system loses no finished experiment and leaves nothing behind.

    CI systems send SIGTERM after SIGINT, and `timeout` sends it twice; neither cuts the record off.
    """

    def end(process: psutil.Process) -> None:
        for number in signals:
            process.send_signal(number)

    ran = run_until_stuck(command, shop, end)
    assert ran.code == code, ran.out + ran.err
    record = check_what_is_left(command, ran, why)
    # What the control legs left stays as well, for who goes on with the run.
    (found,) = (command.out / "latest" / "failures").glob("*/failure.json")
    folder = found.parent
    assert folder.name == record["experiments"][2]["fingerprint"]
    again = command("repro", str(folder))
    assert again.code == 1, again.out + again.err
    assert "still broken: 1 of 1" in again.out


def test_a_fault_of_the_harness_keeps_what_had_finished(command: Command, shop: Path) -> None:
    """An error of the harness in the middle of a run exits 4, and what had finished is recorded."""

    def end(process: psutil.Process) -> None:
        """Let the lane write no file any more, and have it take a crash image."""
        (lane,) = (child for child in process.children() if child.children())
        _, hard = lane.rlimit(psutil.RLIMIT_FSIZE)
        lane.rlimit(psutil.RLIMIT_FSIZE, (0, hard))
        (worker,) = (below for child in lane.children() for below in child.children())
        worker.kill()

    ran = run_until_stuck(command, shop, end)
    assert ran.code == 4, ran.out + ran.err
    assert "crash-harness: the harness failed: " in ran.err
    assert "File too large" in ran.err
    check_what_is_left(command, ran, "an error of the harness")


def test_what_was_not_reached_stays_known(command: Command, shop: Path) -> None:
    """An interrupted run closes no failure that it did not run, and is nobody's earlier run."""
    whole = ["--scenarios", str(shop), "--at", TWICE]
    assert command.run(*whole).code == 1
    (known,) = (command.out / "failures").iterdir()
    first = (command.out / "latest").resolve().name
    ran = run_until_stuck(command, shop, lambda process: process.send_signal(signal.SIGINT))
    assert ran.code == 130
    assert known.exists(), "it was closed by a run that did not try it"
    assert command.record()["timing"]["previous"] == first
    assert command.run(*whole).code == 1
    assert command.record()["timing"]["previous"] == first


def test_nothing_finished_leaves_nothing(command: Command, tmp_path: Path) -> None:
    """Interrupted in the control leg: no record, no folder, and a sentence that says so."""
    folder = tmp_path / "shop"
    folder.mkdir()
    os.mkfifo(folder / "stuck")
    shop = folder / "shop.py"
    shop.write_text(WORKER.replace("if finishing.exists()", "if True"), encoding="utf-8")
    ran = run_until_stuck(command, shop, lambda process: process.send_signal(signal.SIGTERM))
    assert ran.code == 143
    assert ran.err.strip().endswith("crash-harness: interrupted; no record was written")
    assert ran.left == []
    assert list(command.out.iterdir()) == []
