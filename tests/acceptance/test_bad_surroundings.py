"""The command where something is not as it should be: a stream, a path, or the command itself."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from acceptance_command import DEADLINE_S, ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from acceptance_command import Command

SECOND = "tests/acceptance/test_second_worker.py"
HELD = ("run", "--scenarios", SECOND, "careful-orders", "--at", "order.charge.before#1=kill")


def in_shell(command: Command, redirected: str, *arguments: str, **environment: str) -> int:
    """Run it with a redirection; no error may come out of it. Return its exit code."""
    out = ["--out", str(command.out)] if arguments[0] == "run" else []
    shell = ["/bin/bash", "-c", f'"$@" {redirected}', "bash"]
    done = subprocess.run(
        [*shell, sys.executable, "-m", "harness", *arguments, *out],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(command.out.parent), **environment},
        timeout=DEADLINE_S,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "Exception ignored" not in done.stderr, done.stderr
    return done.returncode


def in_python(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script that calls into the command."""
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", **environment},
        timeout=DEADLINE_S,
        check=False,
    )


@pytest.mark.parametrize("redirected", ["| true; exit ${PIPESTATUS[0]}", ">&-", "<&- >&- 2>&-"])
def test_a_run_that_nobody_reads_is_a_run(command: Command, redirected: str) -> None:
    """Closed output is no verdict: the record is written, the exit code is right."""
    assert in_shell(command, redirected, *HELD) == 0
    assert {row["verdict"] for row in command.record()["experiments"]} == {"held"}


@pytest.mark.parametrize("listing", ["schema", "points"])
def test_a_list_that_is_not_read_to_its_end_is_no_failure(command: Command, listing: str) -> None:
    """`| head -1` exits 0, and not 1, which would say that an oracle broke."""
    assert in_shell(command, "| head -1; exit ${PIPESTATUS[0]}", listing) == 0


@pytest.mark.parametrize("arguments", [("schema",), ("points",), HELD])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_under_standard_output_exits_4(
    command: Command, arguments: tuple[str, ...], unbuffered: str
) -> None:
    """The output that was asked for is lost, and that is no verdict either."""
    assert in_shell(command, ">/dev/full", *arguments, PYTHONUNBUFFERED=unbuffered) == 4


def test_any_text_can_be_printed_in_any_locale() -> None:
    """Where an encoding lacks the characters of a message, they are escaped."""
    script = (
        "from harness.cli.standard_streams import prepare_streams\n"
        "prepare_streams()\n"
        "print('d\\u00e9p\\u00f4t')\n"
    )
    done = in_python(script, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (done.stdout, done.returncode) == ("d\\xe9p\\xf4t\n", 0), done.stderr


def test_a_folder_that_cannot_be_made_exits_2(command: Command, tmp_path: Path) -> None:
    """The place was the caller's choice; the message names it."""
    (tmp_path / "file").touch()
    ran = command(*HELD, "--out", str(tmp_path / "file" / "runs"))
    assert ran.code == 2
    where = tmp_path / "file" / "runs"
    assert f"no folder for the run can be made in {where}: Not a directory" in ran.err


def test_a_link_to_itself_has_no_scenarios(command: Command, tmp_path: Path) -> None:
    """A path that cannot be followed is a usage error."""
    (tmp_path / "loop").symlink_to("loop")
    ran = command("scenarios", "--scenarios", str(tmp_path / "loop"))
    assert ran.code == 2
    assert "no scenarios at" in ran.err


def test_a_folder_without_a_record_is_said_to_have_none(command: Command, tmp_path: Path) -> None:
    """`report` takes a run or a failure, and says that there is neither."""
    ran = command("report", str(tmp_path))
    assert (ran.code, ran.out) == (2, "")
    assert f"no record of a run or of a failure at {tmp_path}" in ran.err


def test_the_number_of_lanes_is_bounded(command: Command) -> None:
    """A million processes are refused before the first is started."""
    ran = command(*HELD, "--jobs", "1000000")
    assert ran.code == 2
    assert "1000000 is not in the range 1<=x<=" in ran.err


@pytest.mark.parametrize(
    ("error", "says"),
    [
        ("OSError(28, 'No space left on device', 'f')", "failed: [Errno 28] No space left on"),
        ("ZeroDivisionError('ours')", "ZeroDivisionError: ours\n"),
    ],
)
def test_an_error_of_the_harness_exits_4(error: str, says: str) -> None:
    """Python's own exit code for an error is 1, and that is for an oracle that broke."""
    script = (
        "import harness.cli.run as cli, sys\n"
        f"def fail(source): raise {error}\n"
        "cli.load, sys.argv = fail, ['crash-harness', 'scenarios']\n"
        "cli.main()\n"
    )
    done = in_python(script)
    assert done.returncode == 4
    assert says in done.stderr


@pytest.mark.parametrize("place", ["harness.cli.run", "harness.explore.scenario_files.load"])
def test_an_interrupt_is_one_sentence(place: str) -> None:
    """Ctrl-C while the command is loaded, or at work, exits 130 without a traceback."""
    script = (
        "import sys, harness.__main__ as entry\n"
        "def interrupt(*_): raise KeyboardInterrupt\n"
        f"if {place!r} == 'harness.cli.run':\n"
        "    sys.meta_path.insert(0, type('Finder', (), {'find_spec': interrupt}))\n"
        "else:\n"
        "    import harness.cli.run\n"
        "    harness.cli.run.load = interrupt\n"
        "sys.argv = ['crash-harness', 'scenarios']\n"
        "entry.main()\n"
    )
    done = in_python(script)
    assert done.returncode == 130
    assert done.stderr.strip() == "crash-harness: interrupted; no record was written"


def test_a_run_that_comes_to_nothing_leaves_no_folder(tmp_path: Path) -> None:
    """An empty folder among the records would look like a run."""
    script = (
        "import sys, harness.cli.run as cli, harness.explore.session as session\n"
        "def interrupt(*_, **__): raise KeyboardInterrupt\n"
        "session.run_matrix = interrupt\n"
        f"sys.argv = ['crash-harness', *{HELD!r}, '--out', {str(tmp_path / 'runs')!r}]\n"
        "cli.main()\n"
    )
    done = in_python(script)
    assert done.returncode == 130
    assert done.stderr.strip() == "crash-harness: interrupted; no record was written"
    assert list((tmp_path / "runs").iterdir()) == []
