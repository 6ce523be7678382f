"""Crash-restart-check cycles per second: the harness, the obvious way, and the floor.

``python -m benchmarks.cycles [--json] [--seconds S] [--root DIR]`` measures in one run, on one file
system, each on one core, and in turns:

- *harness*: whole experiments: strike with proof, crash image, recovery, the second restart and its
  fresh command (once for equal states), three oracles. The matrix would run the recovery from equal
  crash images once as well; here it is run each time, for all of these experiments are equal;
- *subprocess*: the same worker with a new interpreter for each life, killing itself at the same
  point, restarted once, and its ledger checked;
- *floor*: fork, open SQLite, one commit, SIGKILL, wait; twice (`benchmarks/floor.py`).

They take turns in short rounds, so that a noisy neighbour disturbs them alike; each figure is the
median of its rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from benchmarks.ledger_scenario import SCENARIO
from benchmarks.ledger_worker import COMMANDS, STRUCK
from harness.experiment.lane import Job
from harness.experiment.sharing import Sharing
from harness.explore.executor import Executor
from harness.images.root import default_root
from harness.model.result import Verdict
from harness.model.schedule import parse
from harness.oracles.effects import read_ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROUNDS = 5


def _harness_cycles(executor: Executor, count: int) -> None:
    job = Job(
        SCENARIO.name, parse(f"{STRUCK}=kill"), 0, sharing=Sharing.PREFIXES | Sharing.RESTARTS
    )
    for _, result in executor.run([job] * count):
        if result.verdict is not Verdict.HELD:
            raise SystemExit(f"the benchmark's worker did not hold: {result}")


@contextmanager
def _on_one_core() -> Iterator[None]:
    """Keep this process and what it starts on the core on which a lane stays, too."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _subprocess_cycles(root: Path, count: int) -> None:
    with _on_one_core():
        _run_subprocesses(root, count)


def _run_subprocesses(root: Path, count: int) -> None:
    for _ in range(count):
        directory = Path(tempfile.mkdtemp(dir=root))
        command = [sys.executable, "-m", "benchmarks.ledger_worker", str(directory)]
        struck = subprocess.run([*command, STRUCK], check=False)
        subprocess.run(command, check=True)
        keys = sorted(effect.key for effect in read_ledger(directory))
        if struck.returncode != -signal.SIGKILL or keys != sorted(COMMANDS):
            raise SystemExit(f"the obvious way went wrong: {struck.returncode}, {keys}")
        shutil.rmtree(directory)


class _Floor:
    """The program `benchmarks/floor.py`, told how many cycles to do."""

    def __init__(self, root: Path) -> None:
        program = Path(__file__).with_name("floor.py")
        with _on_one_core():
            self._process = subprocess.Popen(
                [sys.executable, "-S", str(program), str(root)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.communicate()

    def cycles(self, count: int) -> None:
        """Do so many cycles."""
        if self._process.stdin is None or self._process.stdout is None:
            raise SystemExit("the floor has no pipes")
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        if not self._process.stdout.readline():
            raise SystemExit("the floor's program ended")


def _rate(cycles: Callable[[int], None], seconds: float, batch: int) -> float:
    """Return cycles per second, measured over at least so many seconds."""
    began, count = time.perf_counter(), 0
    while (spent := time.perf_counter() - began) < seconds or not count:
        cycles(batch)
        count += batch
    return count / spent


def measure(root: Path, seconds: float) -> dict[str, float]:
    """Measure the three.

    Args:
        root: Directory for all workspaces.
        seconds: How long to measure each, in seconds.

    Returns:
        Rates per second and ratios, as `--json` prints them.
    """
    sides: dict[str, tuple[Callable[[int], None], int]] = {}
    rounds: dict[str, list[float]] = {}
    # Spawned before anything is measured, and warm, as in a run of the matrix.
    with Executor(1, root) as executor, _Floor(root) as floor:
        executor.prepare([SCENARIO])
        sides["harness"] = (lambda count: _harness_cycles(executor, count), 20)
        sides["subprocess"] = (lambda count: _subprocess_cycles(root, count), 1)
        sides["floor"] = (floor.cycles, 20)
        for cycles, batch in sides.values():
            cycles(batch)
        for _ in range(ROUNDS):
            for name, (cycles, batch) in sides.items():
                rounds.setdefault(name, []).append(_rate(cycles, seconds / ROUNDS, batch))
    rates = {name: sorted(found)[len(found) // 2] for name, found in rounds.items()}
    return {
        "harness_per_s": round(rates["harness"], 1),
        "subprocess_per_s": round(rates["subprocess"], 1),
        "floor_per_s": round(rates["floor"], 1),
        "vs_subprocess": round(rates["harness"] / rates["subprocess"], 2),
        "vs_floor": round(rates["harness"] / rates["floor"], 3),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cycles", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to measure each side")
    parser.add_argument("--root", type=Path, default=None, help="directory for all workspaces")
    given = parser.parse_args()
    found = measure(given.root or default_root(), given.seconds)
    if given.json:
        print(json.dumps(found))
        return
    print(f"harness     {found['harness_per_s']:8.1f} cycles/s")
    print(f"subprocess  {found['subprocess_per_s']:8.1f} cycles/s")
    print(f"floor       {found['floor_per_s']:8.1f} cycles/s")
    print(f"harness / subprocess  {found['vs_subprocess']:6.2f}")
    print(f"harness / floor       {found['vs_floor']:6.3f}")
