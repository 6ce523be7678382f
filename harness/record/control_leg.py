"""The control leg beside a failure: what it did until it was quiet, and what was durable then."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.model.schedule import CONTROL
from harness.record.history import history
from harness.record.shortened import shortened
from harness.record.states import Held, read_held, state
from harness.record.world_view import Observed, observe

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.result import ExperimentResult
    from harness.record.failure_schema import ControlRow

_MESSAGE_CHARS = 2_000
_ENTRIES = 10_000


def control_row(
    result: ExperimentResult, control: ExperimentResult, image: Path, recovered: Held | None
) -> ControlRow:
    """Describe the control leg of a failure.

    What follows its first rest, the second restart, may have been spared and is left out.

    Args:
        result: The failure.
        control: The control leg.
        image: What was durable when the control leg was quiet, if it was kept.
        recovered: What was durable when the failure had recovered, or None not to compare.
    """
    struck = len({fired.incarnation for fired in result.fired})
    here = Counter(hit.label for life in result.incarnations[: struck + 1] for hit in life.hits)
    there = Counter(hit.label for life in control.incarnations[:1] for hit in life.hits)
    row: ControlRow = {
        "verdict": control.verdict.value,
        "note": shortened(control.note, _MESSAGE_CHARS),
        "points": [
            {"label": label, "here": here[label], "control": there[label]}
            for label in dict.fromkeys([*there, *here])
        ],
        "history": [],
        "history_left_out": 0,
        "state": None,
    }
    if result.schedule != CONTROL:
        first = replace(control, incarnations=control.incarnations[:1])
        observed = observe(image / "world") if image.is_dir() else Observed()
        row["history"], row["history_left_out"] = history(
            first, [observed] * len(first.incarnations), _ENTRIES
        )
        if recovered is not None and image.is_dir():
            row["state"] = state(1, "the control leg at rest", recovered, read_held(image))
    return row
