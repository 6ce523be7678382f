"""What a disarmed crash point costs: python -m benchmarks.points [--json].

Both sides of each figure are measured in turns in one run, and the least of the rounds counts, as
`timeit` advises. A point is compared with an empty function that is called in the same way, and
with one that takes nothing; importing `harness.points` with an interpreter that imports nothing.
Both interpreters find bytecode, as they do where a package has been installed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import timeit

ROUNDS = 15
CALLS = 200_000
STARTS = 25

_SETUP = """
from harness.points import crash_point
def empty(): pass
def same(label, **context): pass
"""
CALLED = {
    "empty": "empty()",
    "same": "same('a.b.before')",
    "point": "crash_point('a.b.before')",
    "same_with_context": "same('a.b.before', command='c2')",
    "point_with_context": "crash_point('a.b.before', command='c2')",
}
STARTED = {"interpreter": "pass", "with_points": "import harness.points"}


def calls_ns() -> dict[str, float]:
    """Measure each call, in nanoseconds."""
    timers = {name: timeit.Timer(code, _SETUP) for name, code in CALLED.items()}
    least = dict.fromkeys(timers, float("inf"))
    for _ in range(ROUNDS):
        for name, timer in timers.items():
            least[name] = min(least[name], timer.timeit(CALLS) / CALLS * 1e9)
    return least


def starts_ms() -> dict[str, float]:
    """Measure each interpreter from start to end, in milliseconds."""
    least = dict.fromkeys(STARTED, float("inf"))
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for _ in range(STARTS):
            for name, code in STARTED.items():
                began = time.perf_counter()
                subprocess.run([sys.executable, "-c", code], check=True, env=environment)
                least[name] = min(least[name], (time.perf_counter() - began) * 1e3)
    return least


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.points", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    ns, ms = calls_ns(), starts_ms()
    found = {
        "over_empty_call_ns": ns["point"] - ns["empty"],
        "over_same_call_ns": ns["point"] - ns["same"],
        "with_context_over_same_call_ns": ns["point_with_context"] - ns["same_with_context"],
        "with_context_over_empty_call_ns": ns["point_with_context"] - ns["empty"],
        "import_over_interpreter_ms": ms["with_points"] - ms["interpreter"],
        "vs_empty_call": ns["point"] / ns["empty"],
        "vs_interpreter": ms["with_points"] / ms["interpreter"],
    }
    if given.json:
        print(json.dumps({name: round(value, 3) for name, value in found.items()}))
        return
    for name, value in found.items():
        print(f"{name.replace('_', ' '):36} {value:8.2f}")


if __name__ == "__main__":
    main()
