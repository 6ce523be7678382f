"""The page of a failure: one HTML file that needs nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.report.diagnosis import why
from harness.report.html_page import render
from harness.report.repro_script import commands_to_repeat
from harness.report.timeline_svg import control_timeline, describe_row, timeline
from harness.report.view_model import broken_promises, change, contract, happened

if TYPE_CHECKING:
    from harness.record.failure_schema import FailureRecord, HistoryRow

_HISTORY = 1_000
_SIGNS = {"added": "+", "changed": "~", "removed": "−", "same": ""}
_OPEN_STATES = 2


def failure_page(record: FailureRecord) -> str:
    """Render the page of a failure."""
    shown = _shown(record["history"])
    return render(
        "failure.html",
        {
            "f": record,
            "happened": happened(record),
            "contract": contract(record),
            "broken": broken_promises(record),
            "why": why(record),
            "change": change(record),
            "drawn": timeline(record),
            "control_drawn": control_timeline(record),
            "signs": _SIGNS,
            "open_states": max(_OPEN_STATES, len(record["strikes"]) + 1),
            "again": commands_to_repeat(record),
            "history": [(row, describe_row(row)) for row in shown],
            "history_hidden": len(record["history"]) - len(shown) + record["history_left_out"],
        },
    )


def _shown(history: list[HistoryRow]) -> list[HistoryRow]:
    """Choose entries: the first, the last, and those around the strikes."""
    if len(history) <= _HISTORY:
        return history
    part = _HISTORY // 4
    keep = set(range(part)) | set(range(len(history) - part, len(history)))
    for index, row in enumerate(history):
        if row["what"] == "struck" and len(keep) < _HISTORY:
            keep |= set(range(max(0, index - part // 2), min(len(history), index + part // 2)))
    return [history[index] for index in sorted(keep)[:_HISTORY]]
