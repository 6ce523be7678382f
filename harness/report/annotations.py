"""Annotations of GitHub Actions: what broke, at the line of the crash point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.report.escaping import plain
from harness.report.output import Output, Surroundings, write_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.record.run_schema import ExperimentRow, RunRecord
    from harness.report.recorded_run import RecordedRun

_MOST = 10
"""GitHub shows ten errors of a step."""
_TITLE_CHARS = 120
_MESSAGE_CHARS = 500


class Annotations(Output):
    """Prints the annotations, and writes them to ``annotations.txt``.

    Args:
        surroundings: Takes what is printed.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        self._say = surroundings.say

    def close(self, run: RecordedRun | None) -> None:
        """Print and write them."""
        if run is None:
            return
        places = {
            failure["fingerprint"]: (failure["strikes"][-1]["file"], failure["strikes"][-1]["line"])
            for failure in run.failures.values()
            if failure["strikes"]
        }
        lines = workflow_commands(run.record, places)
        write_text(run.folder.annotations, "".join(f"{line}\n" for line in lines))
        for line in lines:
            self._say(line)


def workflow_commands(record: RunRecord, places: Mapping[str, tuple[str, int]]) -> list[str]:
    """Return workflow commands, one a line.

    Args:
        record: The run.
        places: File and line of the last strike of a failure, by its fingerprint.
    """
    rows = [
        row
        for row in record["experiments"]
        if row["verdict"] == "broken" and row["pin"] == "holds" and not row["known"]
    ]
    lines = [_error(row, places.get(row["fingerprint"])) for row in rows[:_MOST]]
    if len(rows) > _MOST:
        lines.append(f"::notice::{len(rows) - _MOST} more failures are in the record")
    if record["interrupted"]:
        text = f"the run was {record['interrupted']}"
        lines.insert(0, f"::error::{_data(plain(text, _MESSAGE_CHARS))}")
    return [*lines, *_about_scenarios(record)]


def _error(row: ExperimentRow, place: tuple[str, int] | None) -> str:
    fields = []
    if place and place[0]:
        fields = [f"file={_property(place[0])}", f"line={place[1]}"]
    fields.append(f"title={_property(plain(row['id'], _TITLE_CHARS))}")
    found = "; ".join(f"{v['oracle']}: {v['message']}" for v in row["violations"][:3])
    return f"::error {','.join(fields)}::{_data(plain(found, _MESSAGE_CHARS))}"


def _about_scenarios(record: RunRecord) -> Iterator[str]:
    for row in record["scenarios"]:
        if row["mismatch"] and row["pin"] != "holds":
            yield f"::error::{_data(plain(row['name'] + ': ' + row['mismatch'], _MESSAGE_CHARS))}"
        for reason in row["inconclusive"][:3]:
            yield f"::warning::{_data(plain(row['name'] + ': ' + reason, _MESSAGE_CHARS))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
