"""Markdown for the summary page of a CI job, and the pieces that every Markdown output needs.

Text from outside stands in code spans and fenced blocks alone, each with a fence that is longer
than any in it, so nothing in it is markup, a link or a mention.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from harness.report.escaping import block, plain
from harness.report.output import Output, Surroundings, write_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harness.record.run_schema import ExperimentRow, RunRecord
    from harness.report.recorded_run import RecordedRun

_FAILURES = 20
_SCENARIOS = 100
_REASONS = 10
_CHARS = 300


class MarkdownSummary(Output):
    """Writes ``summary.md``, and adds it to the summary of a job of GitHub Actions.

    Args:
        surroundings: Says where that summary is, if there is one.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        self._job_summary = surroundings.environment.get("GITHUB_STEP_SUMMARY")

    def close(self, run: RecordedRun | None) -> None:
        """Write the summary."""
        if run is None:
            return
        text = markdown(run.record)
        write_text(run.folder.summary, text)
        if self._job_summary:
            with Path(self._job_summary).open("a", encoding="utf-8") as file:
                file.write(text)


def code(text: str, limit: int = _CHARS) -> str:
    """Return a text as a code span, which may stand in a table."""
    shown = plain(text, limit).replace("|", "\uff5c") or " "
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def fenced(lines: Iterable[str], language: str = "") -> list[str]:
    """Return lines as a fenced block."""
    shown = [plain(line) for line in lines]
    longest = max((len(run) for line in shown for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence + language, *shown, fence]


def markdown(record: RunRecord) -> str:
    """Render a run for ``$GITHUB_STEP_SUMMARY``."""
    return "\n".join(_lines(record)) + "\n"


def _lines(record: RunRecord) -> Iterator[str]:
    totals = record["totals"]
    words = {0: "✅ as pinned", 1: "❌ not as pinned", 3: "❔ inconclusive"}
    interrupted = record["interrupted"]
    word = "🛑 interrupted" if interrupted else words.get(totals["exit_code"], "❔")
    yield f"## crash-harness: {word}"
    yield ""
    if interrupted:
        yield f"The run was {code(interrupted)}. What had finished before is below."
        yield ""
    yield (
        f"{totals['as_pinned']} of {totals['scenarios']} scenarios as pinned; "
        f"{totals['experiments']} experiments in {record['timing']['seconds']} s: "
        f"{totals['held']} held, {totals['broken']} broken; {totals['moments_struck']} of "
        f"{totals['moments_found']} moments struck, {totals['moments_survived']} survived."
    )
    yield ""
    yield from _table(record)
    off = [row for row in record["scenarios"] if row["mismatch"] or row["inconclusive"]]
    for scenario in off[:_SCENARIOS]:
        yield ""
        yield f"### {code(scenario['name'])}"
        yield ""
        for reason in [scenario["mismatch"], *scenario["inconclusive"]][: _REASONS + 1]:
            if reason:
                yield f"- {code(reason)}"
    new = [
        row
        for row in record["experiments"]
        if row["verdict"] == "broken" and row["pin"] == "holds" and not row["known"]
    ]
    for row in new[:_FAILURES]:
        yield from _failure(row)
    if len(new) > _FAILURES:
        yield ""
        yield f"{len(new) - _FAILURES} more failures are in the record."


def _table(record: RunRecord) -> Iterator[str]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in record["experiments"]:
        counts[row["scenario"]][row["verdict"]] += 1
    yield "| scenario | pinned | held | broken | other | |"
    yield "|---|---|--:|--:|--:|---|"
    # Those that are off come first, so that a cut does not hide them.
    rows = sorted(record["scenarios"], key=lambda scenario: scenario["as_pinned"])
    for scenario in rows[:_SCENARIOS]:
        verdicts = counts[scenario["name"]]
        other = verdicts.total() - verdicts["held"] - verdicts["broken"]
        good = "as pinned" if scenario["as_pinned"] else "**not as pinned**"
        if not (scenario["finished"] or scenario["mismatch"] or scenario["inconclusive"]):
            good = "*not finished*"
        yield (
            f"| {code(scenario['name'])} | {code(scenario['pin'])} | {verdicts['held']} | "
            f"{verdicts['broken']} | {other} | {good} |"
        )
    if len(rows) > _SCENARIOS:
        yield ""
        good = "as pinned" if rows[_SCENARIOS]["as_pinned"] else "in the record"
        yield f"{len(rows) - _SCENARIOS} more scenarios are {good}."


def _failure(row: ExperimentRow) -> Iterator[str]:
    yield ""
    yield f"#### Broken: {code(row['id'])}"
    yield ""
    for violation in row["violations"][:_REASONS]:
        yield f"- {code(violation['oracle'])}: {code(violation['message'])}"
    if row["note"]:
        yield ""
        yield from fenced(block(row["note"], lines=20))
    yield ""
    again = f"crash-harness repro {shlex.quote(row['id'])} --seed {row['seed']}"
    yield f"Run it again: {code(again)}"
