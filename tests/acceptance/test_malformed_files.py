"""The command with paths, files, devices and functions that are not what they should be.

Drawn files are in tests/integration/malformed; here the real command meets what cannot be drawn.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from acceptance_command import DEADLINE_S, ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from acceptance_command import Command

SCENARIO = """
import os, signal
from harness import Command, Finding, NoEffectTwice, OracleStatus, Scenario, Workload

def worker(site):
    pass

class Mine:
    name, promise, remedy = "mine", "says what it should", ""
    def check(self, evidence):
        MINE

GIVEN = Scenario("given", worker, lambda seed: Workload((), fresh=Command("f")), (ORACLES,), MORE)
"""


def scenario_file(
    folder: Path, mine: str = "return None", oracles: str = "", more: str = ""
) -> str:
    """Write a scenario file; return its path."""
    file = folder / "given_scenarios.py"
    text = SCENARIO.replace("MINE", mine).replace("ORACLES", oracles or "NoEffectTwice()")
    file.write_text(text.replace("MORE", more), encoding="utf-8")
    return str(file)


@pytest.fixture
def things(tmp_path: Path) -> Path:
    """Give a folder with one of everything that is not a file of ours."""
    folder = tmp_path / "things"
    (folder / "folder").mkdir(parents=True)
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "bytes").write_bytes(b"\xff\xfe\x00")
    (folder / "empty").touch()
    with closing(socket.socket(socket.AF_UNIX)) as end:
        end.bind(str(folder / "socket"))
    for name in ("results.json", "failure.json", "journal.ndjson", "a.py"):
        (folder / name).with_suffix(".d").mkdir()
        os.mkfifo((folder / name).with_suffix(".d") / name)
    (folder / "runs" / "latest").mkdir(parents=True)
    return folder


LONG = "x" * 5_000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("scenarios --scenarios pipe", "no scenarios at"),
        ("scenarios --scenarios a.d", "is a named pipe, not a file"),
        ("scenarios --scenarios bytes", ""),
        ("scenarios --scenarios ~nouser/x", "~nouser/x"),
        (f"scenarios --scenarios {LONG}", "no scenarios at"),
        ("report results.d", "is a named pipe, not a file"),
        ("report failure.d", "is a named pipe, not a file"),
        ("report /dev/zero", ""),
        (f"report {LONG}", ""),
        ("recheck failure.d", "is a named pipe, not a file"),
        ("recheck loop", ""),
        ("repro failure.d", "is a named pipe, not a file"),
        ("repro socket", ""),
        ("run --scenarios OK --pins pipe", "is a named pipe, not a file"),
        ("run --scenarios OK --pins bytes", ""),
        ("run --scenarios OK --pins /dev/zero", "is a device, not a file"),
        ("run --scenarios OK --root pipe", "no workspace can be made in"),
        ("run --scenarios OK --root /proc", "no workspace can be made in /proc"),
        ("run --scenarios OK --root /dev/null", "no workspace can be made in /dev/null"),
        ("run --scenarios OK --out dangling", "no folder for the run can be made in dangling"),
        ("run --scenarios OK --out pipe", ""),
        (f"run --scenarios OK --out {LONG}", "5,000 characters"),
        ("run --scenarios OK --out runs", "runs/latest is not a link"),
        ("run --scenarios OK --out o --seeds 1-\u0663", ""),
        ("run --scenarios OK --out o --at a.b.before#\u0663=kill", "a.b.before"),
        (f"run --scenarios OK --out o {LONG}", "given"),
        ("run --scenarios OK --out o --resume pipe", ""),
        ("run --scenarios OK --out runs --resume latest", ""),
        ("run --scenarios OK --out o --resume ../../folder", ""),
        (f"run --scenarios OK --out o --resume {LONG}", ""),
        ("report journal.d", "no journal of a run at"),
        ("gallery --check --scenarios OK --gallery pipe", ""),
        (LONG, "unknown command"),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else None,
)
def test_what_is_not_what_it_should_be_exits_2(things: Path, arguments: str, says: str) -> None:
    """Pipes were waited for, and some directories ended in a traceback or in another exit code."""
    ok = scenario_file(things.parent)
    done = subprocess.run(
        [sys.executable, "-m", "harness", *arguments.replace("OK", ok).split(" ")],
        cwd=things,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()
    assert says in done.stderr
    assert {path.name for path in (things / "runs").iterdir()} == {"latest"}
    assert not list((things / "folder").iterdir())


def test_workspaces_in_a_relative_directory(command: Command, tmp_path: Path) -> None:
    """A worker has a working directory of its own, and did not find a workspace from there."""
    root = tmp_path / "root"
    root.mkdir()
    relative = os.path.relpath(root, ROOT)
    ran = command.run("--scenarios", scenario_file(tmp_path), "--root", relative, "--at", "")
    assert ran.code == 0, ran.out + ran.err
    assert not list(root.iterdir())


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("raise SystemExit(0)", "SystemExit: 0 (line 1)"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt (line 1)"),
        ("raise BaseException('x\\x1b[31m')", "BaseException: x"),
        ("import os; os._exit(0)", "it ends the process, os._exit(0) (line 1)"),
        ("x=" + "(" * 300 + ")" * 300, "too many nested parentheses"),
        ("x = 1\x00", "null bytes"),
    ],
)
def test_a_file_that_ends_the_command_is_refused(
    command: Command, tmp_path: Path, source: str, says: str
) -> None:
    """Its exit code was that of the command: 0 for a run that has not been."""
    file = tmp_path / "given_scenarios.py"
    file.write_text(source)
    ran = command.run("--scenarios", str(file))
    assert ran.code == 2
    assert says in ran.err
    assert "\x1b" not in ran.err


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("deadline_s=float('inf')", "deadline_s is inf"),
        ("deadline_s=float('nan')", "deadline_s is nan"),
        ("deadline_s=0", "deadline_s is 0"),
        ("warm=5", "warm is 5 (int), not a function"),
        ("strike='a.b.before'", "not a tuple"),
    ],
)
def test_a_field_that_cannot_be_is_refused(
    command: Command, tmp_path: Path, more: str, says: str
) -> None:
    """A run with a deadline that never comes hung, and one of NaN waited for nothing."""
    ran = command("scenarios", "--scenarios", scenario_file(tmp_path, more=more))
    assert ran.code == 2
    assert says in ran.err


@pytest.mark.parametrize(
    ("mine", "says"),
    [
        ("return None", "oracle mine failed: TypeError: it answered None, not a Finding"),
        ("raise SystemExit(0)", "oracle mine failed: SystemExit: 0"),
        ("return Finding(OracleStatus.UNKNOWN, 5)", "oracle mine failed: TypeError"),
    ],
)
def test_an_oracle_that_does_not_answer_is_named(
    command: Command, tmp_path: Path, mine: str, says: str
) -> None:
    """It took the lane along, and the run with it; that nothing can be told is inconclusive."""
    ran = command.run("--scenarios", scenario_file(tmp_path, mine, "Mine()"), "--at", "")
    assert ran.code == 3, ran.err
    (row,) = command.record()["experiments"]
    assert row["verdict"] == "unknown"
    assert says in row["note"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [("scenarios --scenarios nowhere", 2), ("run --scenarios OK --at= --out OUT", 4)],
)
def test_a_full_device_under_both_outputs(tmp_path: Path, arguments: str, code: int) -> None:
    """What could not be said on standard error became Python's own exit code, 1 or 120."""
    words = arguments.replace("OK", scenario_file(tmp_path)).replace("OUT", str(tmp_path / "runs"))
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        done = subprocess.run(
            [sys.executable, "-m", "harness", *words.split(" ")],
            cwd=ROOT,
            stdout=full,
            stderr=full,
            timeout=DEADLINE_S,
            check=False,
        )
    assert done.returncode == code


def test_five_interrupts_in_a_row_are_one(tmp_path: Path) -> None:
    """The second broke into what the first had begun to clear up, with a traceback."""
    out = ["--out", str(tmp_path / "runs")]
    root = tmp_path / "root"
    root.mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "harness", "run", "reference", *out, "--root", str(root)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # lanes are being started
        for _ in range(5):
            os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "interrupted" in err
    assert not list(root.glob("crash-harness-*"))
