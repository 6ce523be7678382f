"""The outputs by name, and which files each of them writes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from harness.model.errors import UnknownNameError, UsageError
from harness.record.failure_schema import FAILURE, read_failure_record
from harness.record.run_schema import RESULTS, read_run
from harness.report.annotations import workflow_commands
from harness.report.html_failure import failure_page
from harness.report.html_run import run_page
from harness.report.issue import issue
from harness.report.junit import junit
from harness.report.markdown import markdown
from harness.report.ndjson import ndjson
from harness.report.repro_script import program, test_to_paste

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from harness.record.failure_schema import FailureRecord
    from harness.record.run_schema import RunRecord

OUTPUTS = ("html", "junit", "markdown", "annotations", "ndjson", "issue")
EVENTS = "events.ndjson"
_PAGES = 100
"""How many failures of a run get a page at once."""


def chosen(text: str | None, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return which outputs are wanted.

    Args:
        text: Names joined by commas; ``none`` for none, None for the usual ones: ``html``, and in
            GitHub Actions also ``markdown`` and ``annotations``.
        environment: Environment variables.

    Raises:
        UnknownNameError: A name is not known.
    """
    if text is None:
        if environment.get("GITHUB_ACTIONS") == "true":
            return ("html", "markdown", "annotations")
        return ("html",)
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in (*OUTPUTS, "none"):
            raise UnknownNameError("report", name, (*OUTPUTS, "none"))
    return tuple(name for name in dict.fromkeys(names) if name != "none")


def write_run(
    directory: Path, record: RunRecord, names: Iterable[str], say: Callable[[str], None]
) -> None:
    """Write the outputs of a run and of its failures.

    Args:
        directory: The run's directory.
        record: Its record.
        names: Which outputs.
        say: Is given what must go to standard output, a line at a time.
    """
    wanted = frozenset(names)
    failures = _failures(directory, record)
    # Those that nobody expected first; the rest are rendered by `crash-harness report FOLDER`.
    order = sorted(failures, key=lambda folder: failures[folder]["pin"] != "holds")
    for number, folder in enumerate(order):
        write_failure(folder, failures[folder], wanted if number < _PAGES else ())
    if "html" in wanted:
        pages = {failures[folder]["fingerprint"] for folder in order[:_PAGES]}
        _write(directory / "report.html", run_page(record, _before(directory, record), pages))
    if "junit" in wanted:
        _write(directory / "junit.xml", junit(record))
    if "markdown" in wanted:
        _write(directory / "summary.md", markdown(record))
        _append_step_summary(markdown(record))
    if "ndjson" in wanted and not (directory / EVENTS).exists():
        _write(directory / EVENTS, "".join(ndjson(record)))
    if "annotations" in wanted:
        places = {
            failure["fingerprint"]: (failure["strikes"][-1]["file"], failure["strikes"][-1]["line"])
            for failure in failures.values()
            if failure["strikes"]
        }
        lines = workflow_commands(record, places)
        _write(directory / "annotations.txt", "".join(f"{line}\n" for line in lines))
        for line in lines:
            say(line)


def write_failure(folder: Path, record: FailureRecord, names: Iterable[str]) -> None:
    """Write the outputs of a failure, and the program and the test that run it again.

    Args:
        folder: The failure's folder.
        record: Its record.
        names: Which outputs.
    """
    wanted = frozenset(names)
    _write(folder / "repro.py", program(record))
    _write(folder / "test_repro.py", test_to_paste(record))
    if "html" in wanted:
        _write(folder / "report.html", failure_page(record))
    if wanted & {"html", "issue"}:
        _write(folder / "ISSUE.md", issue(record))


def write_again(path: Path, names: Iterable[str], say: Callable[[str], None]) -> None:
    """Render an old record again.

    Args:
        path: A run's directory or a failure's folder, or the record in one.
        names: Which outputs.
        say: Is given what must go to standard output, a line at a time.

    Raises:
        UsageError: There is no record, or it is of another version.
    """
    folder = path if path.is_dir() else path.parent
    if (folder / RESULTS).exists():
        write_run(folder, read_run(folder), names, say)
    elif not (folder / FAILURE).exists():
        raise UsageError(f"no record of a run or of a failure at {path}")
    else:
        write_failure(folder, read_failure_record(folder), names)


def _failures(directory: Path, record: RunRecord) -> dict[Path, FailureRecord]:
    found = {}
    for row in record["experiments"]:
        folder = directory / "failures" / row["fingerprint"]
        # A failure that a later run showed fixed is no longer there.
        if row["fingerprint"].isalnum() and folder.is_dir():
            found[folder] = read_failure_record(folder)
    return found


def _before(directory: Path, record: RunRecord) -> RunRecord | None:
    previous = Path(record["timing"]["previous"]).name
    if not previous:
        return None
    try:
        return read_run(directory.parent / previous)
    except UsageError:  # gone, or of another version: there is nothing to compare with
        return None


def _append_step_summary(text: str) -> None:
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
