"""The harness is crash-safe too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
DEADLINE_S = 60.0


def _below(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


@pytest.mark.parametrize("wanted", [2, 5])
def test_killing_the_harness_leaves_no_process(tmp_path: Path, wanted: int) -> None:
    """SIGKILL of the command in the middle of a run leaves no process behind.

    Killed while its lanes start, and when world and incarnations are at work.
    """
    root = tmp_path / "root"
    root.mkdir()
    command = [sys.executable, "-m", "harness", "run", "reference", "--out", str(tmp_path / "out")]
    process = subprocess.Popen([*command, "--root", str(root)], cwd=ROOT, stdout=subprocess.DEVNULL)
    end = time.monotonic() + DEADLINE_S
    family: list[psutil.Process] = []
    while len(family) < wanted:
        assert time.monotonic() < end, f"only {family} came up"
        assert process.poll() is None, "the run ended before it was killed"
        family = _below(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(DEADLINE_S) == -signal.SIGKILL
    # Those that were seen, and those that they have started since.
    for relative in family:
        try:
            family += relative.children(recursive=True)
        except psutil.NoSuchProcess:
            continue
    _, alive = psutil.wait_procs(family, timeout=DEADLINE_S)
    assert not alive
    assert not list(root.iterdir()), "workspaces are left"
