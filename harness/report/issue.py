"""The draft of an issue: settings, numbered steps with the strike marked, expected and actual."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.images.run_folder import FailureFolder
from harness.report.diagnosis import why
from harness.report.markdown import code, fenced
from harness.report.output import Output, Surroundings, write_text
from harness.report.repro_script import commands_to_repeat
from harness.report.timeline_svg import describe_row
from harness.report.view_model import broken_promises, change, headline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.record.failure_schema import FailureRecord, HistoryRow, StateRow
    from harness.report.recorded_run import RecordedRun

_STEPS_BEFORE = 5
_FACTS = 10
_ROWS = 12
_CELLS = 8


class IssueDrafts(Output):
    """Writes ``ISSUE.md`` for each failure.

    Args:
        _surroundings: Not used.
    """

    def __init__(self, _surroundings: Surroundings) -> None:
        pass

    def close(self, run: RecordedRun | None) -> None:
        """Write the drafts."""
        if run is not None:
            for folder, failure in run.shown.items():
                self.write_failure(folder, failure)

    def write_failure(self, folder: Path, record: FailureRecord) -> None:
        """Write the draft of a failure."""
        write_text(FailureFolder(folder).issue, issue(record))


def issue(record: FailureRecord) -> str:
    """Render the draft of an issue."""
    return "\n".join(_lines(record)) + "\n"


def _lines(record: FailureRecord) -> Iterator[str]:
    schedule = code(record["schedule"] or "control")
    yield f"# {code(record['scenario'])} breaks a promise at {schedule}"
    yield ""
    yield code(headline(record), 600)
    yield ""
    yield "## Why"
    yield ""
    for label, text in why(record):
        yield f"- {label} {code(text, 600)}"
    yield ""
    yield "## What to change"
    yield ""
    for sentence in change(record):
        yield f"- {code(sentence, 600)}"
    yield ""
    yield "## Settings"
    yield ""
    yield f"- scenario {code(record['scenario'])}, seed {record['seed']}"
    yield f"- schedule {code(record['schedule'] or 'control')}"
    if record["minimal"]["schedule"] != record["schedule"]:
        yield f"- shortest schedule {code(record['minimal']['schedule'] or 'control')}"
    yield f"- fingerprint {code(record['fingerprint'])}"
    about = record["environment"]
    if about["python"]:
        yield f"- {code(about['python'])} on {code(about['platform'])}"
    yield ""
    yield "## Steps"
    yield ""
    for number, step in enumerate(_steps(record), start=1):
        yield f"{number}. {step}"
    yield ""
    yield "## Expected and actual"
    yield ""
    for row in broken_promises(record):
        yield f"- expected: {code(row.promise)} ({code(row.name)})"
        for fact in row.found[:_FACTS]:
            yield f"  - actual: {code(fact, 600)}"
    yield ""
    yield from _durable(record)
    yield "## Run it again"
    yield ""
    yield from fenced(commands_to_repeat(record), "sh")
    for strike in record["strikes"][-1:]:
        if strike["lines"]:
            yield ""
            yield "## The line: " + code(f"{strike['file']}:{strike['line']}")
            yield ""
            yield from fenced(
                f"{'> ' if line['number'] == strike['line'] else '  '}"
                f"{line['number']:4} {line['text']}"
                for line in strike["lines"]
            )


def _steps(record: FailureRecord) -> Iterator[str]:
    """Give the steps: of each incarnation its beginning, what led to the strike, its end."""
    by_life: dict[int, list[HistoryRow]] = {}
    for row in record["history"]:
        by_life.setdefault(row["incarnation"], []).append(row)
    for number, rows in sorted(by_life.items()):
        own = [row for row in rows if row["lane"] == "worker"]
        struck = [index for index, row in enumerate(own) if row["what"] == "struck"]
        yield f"Start incarnation {number}."
        if not struck:
            points = sum(row["what"] == "point" for row in own)
            yield f"Let it run until nothing is left to do; it passes {points} points."
            continue
        first = max(1, struck[0] - _STEPS_BEFORE)
        if first > 1:
            yield f"It passes {first - 1} points."
        for row in own[first : struck[0]]:
            yield f"It passes {code(describe_row(row))}."
        for index in struck:
            yield f"**✗ STRIKE: {code(describe_row(own[index]))}**"


def _durable(record: FailureRecord) -> Iterator[str]:
    struck = {strike["incarnation"] for strike in record["strikes"]}
    shown = [state for state in record["states"] if state["incarnation"] in struck]
    for state in shown[-1:] or record["states"][:1]:
        yield f"## Durable state {code(state['title'])}"
        yield ""
        yield from fenced(_state_lines(state))
        yield ""


def _state_lines(state: StateRow) -> Iterator[str]:
    for table in state["tables"]:
        yield f"{table['database']} {table['table']}: {table['total']} rows"
        rows = [row for row in table["rows"] if row["change"] != "removed"]
        for row in rows[:_ROWS]:
            yield "    " + " | ".join(cell[:40] for cell in row["cells"][:_CELLS])
    for file in state["files"]:
        yield f"{file['path']} {file['checksum'][:23]}"
