"""The trace goes to its own file or nowhere, whatever a program does to its descriptors."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import harness
from harness.points.trace_file import TraceFile

ROOT = Path(harness.__file__).parent.parent

PROGRAM = """
import os, resource, sys
sys.path.insert(0, {root!r})
from harness.points.trace_file import TraceFile
trace = TraceFile({path!r})
{harm}
for word in (b"one\\n", b"two\\n"):
    print(trace.is_ready() and trace.write(word), flush=True)
"""


def after(harm: str, folder: Path) -> tuple[list[str], str, str]:
    """Let a program harm itself, and return what it was told, its errors, and the trace."""
    path = folder / "trace"
    program = PROGRAM.format(root=str(ROOT), path=str(path), harm=harm)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=folder
    )
    return done.stdout.split(), done.stderr, path.read_text(encoding="utf-8")


def test_a_trace_that_was_closed_is_opened_again(tmp_path: Path) -> None:
    """Closing all descriptors is what daemons do."""
    assert after("os.closerange(3, 4096)", tmp_path) == (["True", "True"], "", "one\ntwo\n")


def test_a_file_that_took_the_number_is_left_alone(tmp_path: Path) -> None:
    """The lines of the trace were written into a file of the program."""
    harm = (
        "os.closerange(3, 4096)\n"
        "mine = os.open('mine', os.O_RDWR | os.O_CREAT)\n"
        "for n in range(4, 1000): os.dup2(mine, n)"
    )
    said, errors, trace = after(harm, tmp_path)
    assert (said, errors, trace) == (["True", "True"], "", "one\ntwo\n")
    assert (tmp_path / "mine").read_bytes() == b""


def test_a_low_limit_of_descriptors_is_enough(tmp_path: Path) -> None:
    """A number that is high is better, not necessary."""
    harm = "resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10)); os.closerange(3, 4096)"
    assert after(harm, tmp_path) == (["True", "True"], "", "one\ntwo\n")


def test_a_trace_that_is_another_file_now_is_not_written_to(tmp_path: Path) -> None:
    """What lies at its path need not be ours, and what cannot be seen is said once."""
    harm = (
        "os.closerange(3, 4096)\n"
        f"os.rename({str(tmp_path / 'trace')!r}, 'old')\n"
        f"open({str(tmp_path / 'trace')!r}, 'w').close()"
    )
    said, errors, trace = after(harm, tmp_path)
    assert (said, trace) == (["False", "False"], "")
    assert errors.count("cannot be written any more") == 1
    assert "is another file now" in errors


def test_no_room_for_the_trace_raises_nothing_in_the_worker(tmp_path: Path) -> None:
    """A limit of the size of files made a point raise in the middle of the program."""
    harm = "resource.setrlimit(resource.RLIMIT_FSIZE, (4, 4))"
    said, errors, trace = after(harm, tmp_path)
    assert (said, trace) == (["True", "False"], "one\n")
    assert "File too large" in errors


def test_the_lost_trace_is_said_in_the_output_alone(tmp_path: Path) -> None:
    """A file that took the number of the output is as much the program's own as any other."""
    harm = (
        "resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))\n"
        "os.closerange(2, 4096)\n"
        "for n in range(2): os.open('mine', os.O_RDWR | os.O_CREAT)\n"
    )
    said, errors, trace = after(harm, tmp_path)
    assert (said, errors, trace) == (["False", "False"], "", "")
    assert (tmp_path / "mine").read_bytes() == b""


def test_the_trace_is_out_of_the_way(tmp_path: Path) -> None:
    """A program that counts on the lowest free number gets it."""
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    trace = TraceFile(str(tmp_path / "trace"))
    assert trace.is_ready()
    now = os.open(os.devnull, os.O_RDONLY)
    os.close(now)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert now == lowest or soft <= 32
