"""How long rendering takes, and how large pages get: python -m benchmarks.render."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.large_records import large_failure, large_run
from harness.report.html_failure import failure_page
from harness.report.html_run import run_page
from harness.report.issue import issue
from harness.report.junit import junit
from harness.report.markdown import markdown
from harness.report.ndjson import ndjson

if TYPE_CHECKING:
    from collections.abc import Callable

EXPERIMENTS = 10_000
EVENTS = 100_000


def main() -> None:
    """Measure and print."""
    run, before, failure = large_run(EXPERIMENTS), large_run(EXPERIMENTS), large_failure(EVENTS)
    outputs: dict[str, Callable[[], str]] = {
        f"run page, {EXPERIMENTS} experiments (limit 5 s, 5 MB)": lambda: run_page(run, before),
        f"JUnit, {EXPERIMENTS} experiments": lambda: junit(run),
        f"Markdown, {EXPERIMENTS} experiments": lambda: markdown(run),
        f"event log, {EXPERIMENTS} experiments": lambda: "".join(ndjson(run)),
        f"failure page, {EVENTS} events": lambda: failure_page(failure),
        f"issue, {EVENTS} events": lambda: issue(failure),
    }
    for name, output in outputs.items():
        began, used = time.perf_counter(), time.process_time()
        text = output()
        seconds, cpu_s = time.perf_counter() - began, time.process_time() - used
        size = len(text.encode()) / 1e6
        print(f"{name:52} {seconds:7.3f} s {cpu_s:7.3f} s of CPU {size:8.3f} MB")


if __name__ == "__main__":
    main()
