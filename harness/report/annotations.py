"""Annotations of GitHub Actions: what broke, at the line of the crash point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.report.escaping import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.record.run_schema import ExperimentRow, RunRecord

_MOST = 10
"""GitHub shows ten errors of a step."""
_TITLE_CHARS = 120
_MESSAGE_CHARS = 500


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
        if not row["as_pinned"] and row["pin"] != "holds":
            yield f"::error::{_data(plain(row['name'] + ': ' + row['mismatch'], _MESSAGE_CHARS))}"
        for reason in row["inconclusive"][:3]:
            yield f"::warning::{_data(plain(row['name'] + ': ' + reason, _MESSAGE_CHARS))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
