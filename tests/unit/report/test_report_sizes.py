"""The size of pages: bounded, whatever the record holds."""

from __future__ import annotations

from benchmarks.large_records import large_failure, large_run
from harness.report.html_failure import failure_page
from harness.report.html_run import run_page
from harness.report.timeline_svg import timeline


def test_run_of_10_000_experiments_stays_below_5_mb() -> None:
    """A run of 10,000 experiments renders to under 5 MB."""
    assert len(run_page(large_run(10_000), large_run(10_000)).encode()) < 5_000_000


def test_history_of_100_000_events_stays_below_2_mb() -> None:
    """A history of 100,000 events renders to a page that opens at once."""
    record = large_failure(100_000)
    page = failure_page(record)
    assert len(page.encode()) < 2_000_000
    drawn = timeline(record)
    assert len(drawn.marks) < 1_000
    assert drawn.left_out > 90_000
    assert f"{drawn.left_out} entries are not drawn" in page


def test_strike_is_always_drawn() -> None:
    """A cut timeline still shows every strike."""
    assert len(timeline(large_failure(100_000)).strikes) == 2
