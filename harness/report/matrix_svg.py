"""The matrix as a picture: the crash points of a scenario against what came of striking them."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.model.errors import UsageError
from harness.model.schedule import parse

if TYPE_CHECKING:
    from harness.record.run_schema import RunRecord

OUTCOMES = ("held", "broken", "not_fired", "wrong_death", "hung", "flaky", "unknown")
_ROWS = 400
_BAR = 240


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a bar.

    Attributes:
        outcome: Which verdict.
        count: How many experiments.
        x: Where it begins.
        width: How wide it is.
    """

    outcome: str
    count: int
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class PointRow:
    """A crash point.

    Attributes:
        label: Its label.
        source: ``file:line``, or empty.
        counts: How many experiments of each of `OUTCOMES` aimed at it last.
        segments: The same as a bar.
        in_recovery: How many of them struck a recovery.
        reached: Whether anything reached it.
    """

    label: str
    source: str
    counts: tuple[int, ...]
    segments: tuple[Segment, ...]
    in_recovery: int
    reached: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """The picture of a scenario.

    Attributes:
        scenario: Its name.
        rows: Its points, in the order in which they were aimed at.
        left_out: How many are not drawn.
    """

    scenario: str
    rows: tuple[PointRow, ...]
    left_out: int


def pictures(record: RunRecord) -> tuple[Picture, ...]:
    """Draw every scenario of a run."""
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    recovery: Counter[tuple[str, str]] = Counter()
    labels: dict[str, dict[str, str]] = defaultdict(dict)
    reached: dict[tuple[str, str], bool] = {}
    for moment in record["moments"]:
        label = _label(moment["moment"])
        key = (moment["scenario"], label)
        labels[moment["scenario"]].setdefault(label, moment["source"])
        reached[key] = reached.get(key, False) or moment["reached"]
    for row in record["experiments"]:
        if row["schedule"]:
            label, later = _aim(row["schedule"])
            key = (row["scenario"], label)
            counts[key][row["verdict"]] += 1
            recovery[key] += later
    found = []
    for scenario in record["scenarios"]:
        name = scenario["name"]
        rows = [
            _row(label, source, counts[name, label], recovery[name, label], reached[name, label])
            for label, source in labels[name].items()
        ]
        if rows:
            found.append(Picture(name, tuple(rows[:_ROWS]), max(0, len(rows) - _ROWS)))
    return tuple(found)


def _aim(schedule: str) -> tuple[str, bool]:
    """Return the label of the last strike, and whether another incarnation was struck before."""
    try:
        parsed = parse(schedule)
    except UsageError:  # of a version with more faults
        return schedule, False
    return parsed.moments[-1].label, len(parsed.incarnations) > 1


def _label(moment: str) -> str:
    return moment.split("[", 1)[0].split("#", 1)[0]


def _row(
    label: str, source: str, counts: Counter[str], in_recovery: int, reached: bool
) -> PointRow:
    total = counts.total()
    segments = []
    x = 0.0
    for outcome in OUTCOMES:
        if counts[outcome]:
            width = _BAR * counts[outcome] / total
            segments.append(Segment(outcome, counts[outcome], round(x, 1), round(width, 1)))
            x += width
    return PointRow(
        label=label,
        source=source,
        counts=tuple(counts[outcome] for outcome in OUTCOMES),
        segments=tuple(segments),
        in_recovery=in_recovery,
        reached=reached,
    )
