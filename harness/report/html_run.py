"""The page of a run: one HTML file that needs nothing else."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from harness.report.diff import compare_runs
from harness.report.html_page import render
from harness.report.matrix_svg import OUTCOMES, pictures
from harness.report.overview import overview

if TYPE_CHECKING:
    from collections.abc import Container

    from harness.record.run_schema import RunRecord

_FAILURES = 500
_PICTURES = 60
_WORDS = {0: ("✓ as pinned", "good"), 1: ("✗ not as pinned", "bad"), 3: ("? inconclusive", "warn")}


def run_page(
    record: RunRecord, before: RunRecord | None, pages: Container[str] | None = None
) -> str:
    """Render the page of a run.

    Args:
        record: The run.
        before: The run before it, if its record is there.
        pages: Fingerprints of the failures that have a page; None for all.
    """
    word, colour = _WORDS.get(record["totals"].get("exit_code", 0), ("? unknown", "warn"))
    if record["interrupted"]:
        word, colour = "■ interrupted", "bad"
    broken = [row for row in record["experiments"] if row["verdict"] == "broken"]
    # What nobody expects comes first: not pinned; what a known-bad worker does stands apart.
    surprising = sorted((r for r in broken if r["pin"] == "holds"), key=lambda row: row["known"])
    caught = [row for row in broken if row["pin"] != "holds"]
    drawn = sorted(pictures(record), key=lambda picture: _pin(record, picture.scenario) != "holds")
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in record["experiments"]:
        counts[row["scenario"]][row["verdict"]] += 1
    return render(
        "run.html",
        {
            "r": record,
            "word": word,
            "colour": colour,
            "off": [row for row in record["scenarios"] if row["mismatch"] or row["inconclusive"]],
            "failures": surprising[:_FAILURES],
            "failures_left_out": max(0, len(surprising) - _FAILURES),
            "caught": caught[:_FAILURES],
            "caught_left_out": max(0, len(caught) - _FAILURES),
            "grid": overview(drawn),
            "pins_of": {row["name"]: row["pin"] for row in record["scenarios"]},
            "pictures": drawn[:_PICTURES],
            "pictures_left_out": max(0, len(drawn) - _PICTURES),
            "outcomes": OUTCOMES,
            "pages": {row["fingerprint"] for row in broken} if pages is None else pages,
            "changes": compare_runs(record, before) if before else None,
            "previous": record["timing"]["previous"],
            "bounded": [row for row in record["scenarios"] if row["bounds"]],
            "scenarios": [(row, counts[row["name"]]) for row in record["scenarios"]],
        },
    )


def _pin(record: RunRecord, scenario: str) -> str:
    return next(row["pin"] for row in record["scenarios"] if row["name"] == scenario)
