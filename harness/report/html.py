"""The output ``html``: the page of a run, and a page and the draft of an issue for each failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.images.run_folder import FailureFolder
from harness.report.html_failure import failure_page
from harness.report.html_run import run_page
from harness.report.issue import issue
from harness.report.output import Output, Surroundings, write_text

if TYPE_CHECKING:
    from pathlib import Path

    from harness.record.failure_schema import FailureRecord
    from harness.report.recorded_run import RecordedRun


class HtmlPages(Output):
    """Writes ``report.html`` of the run and of its failures.

    Args:
        _surroundings: Not used.
    """

    def __init__(self, _surroundings: Surroundings) -> None:
        pass

    def close(self, run: RecordedRun | None) -> None:
        """Write the pages."""
        if run is None:
            return
        for folder, failure in run.shown.items():
            self.write_failure(folder, failure)
        pages = {failure["fingerprint"] for failure in run.shown.values()}
        write_text(run.folder.report, run_page(run.record, run.before, pages))

    def write_failure(self, folder: Path, record: FailureRecord) -> None:
        """Write the page of a failure, and the draft of an issue beside it."""
        write_text(FailureFolder(folder).report, failure_page(record))
        write_text(FailureFolder(folder).issue, issue(record))
