"""Every renderer by name, so that a test can go through all of them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from harness.report.annotations import workflow_commands
from harness.report.gallery_index import Entry, gallery_index
from harness.report.html_failure import failure_page
from harness.report.html_run import run_page
from harness.report.issue import issue
from harness.report.junit import junit
from harness.report.markdown import markdown
from harness.report.ndjson import ndjson
from harness.report.repro_script import program, test_to_paste
from harness.report.summary import print_summary

if TYPE_CHECKING:
    from harness.record.failure_schema import FailureRecord
    from harness.record.run_schema import RunRecord


def terminal(run: RunRecord, *, colour: bool = False) -> str:
    """Render the summary as a terminal shows it."""
    console = Console(
        file=io.StringIO(), force_terminal=colour, no_color=not colour, width=100, highlight=False
    )
    print_summary(console, run, Path("reports/runs/latest"))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def of_run(run: RunRecord, before: RunRecord | None) -> dict[str, str]:
    """Return what every renderer makes of a run, by the name of its file."""
    places = {row["fingerprint"]: ("shop/orders.py", 12) for row in run["experiments"]}
    return {
        "run.html": run_page(run, before),
        "junit.xml": junit(run),
        "summary.md": markdown(run),
        "annotations.txt": "".join(f"{line}\n" for line in workflow_commands(run, places)),
        "events.ndjson": "".join(ndjson(run)),
        "terminal.txt": terminal(run),
    }


def _entries(failure: FailureRecord) -> list[Entry]:
    promise = failure["promises"][0]["promise"]
    return [
        Entry("charges", promise, (failure["scenario"],), failure, is_sample=True),
        Entry("orders", promise, (), failure, is_sample=False),
    ]


def of_failure(failure: FailureRecord) -> dict[str, str]:
    """Return what every renderer makes of a failure, by the name of its file."""
    return {
        "failure.html": failure_page(failure),
        "ISSUE.md": issue(failure),
        "gallery.md": gallery_index(_entries(failure)),
        "repro.py.txt": program(failure),
        "test_repro.py.txt": test_to_paste(failure),
    }
