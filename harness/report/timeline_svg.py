"""The timeline of an experiment: lanes and marks with their places, ready to be drawn as SVG.

It is bounded: of a long incarnation the beginning, the end and what is near a strike are drawn,
and what is left out is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.record.failure_schema import FailureRecord, HistoryRow, StateRow

STEP = 16
LANE = 34
TOP = 26
_PAD = 14
_LIFE_MARKS = 60
_HEAD = 12
_LIVES = 8
_PRINTED = 640


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened.

    Attributes:
        x: Horizontal place.
        y: Vertical place.
        kind: ``point``, ``struck``, ``started``, ``ended``, ``fact``, ``effect``, ``disk`` or
            ``gap``.
        text: What happened.
    """

    x: int
    y: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane.

    Attributes:
        name: Its name.
        y: Vertical place of its line.
        start: Where its line begins.
        end: Where its line ends.
    """

    name: str
    y: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """A drawing.

    Attributes:
        width: Its width.
        height: Its height.
        bands: Where each incarnation begins and ends: what stands in one belongs to it, and what
            is in different lanes of it has no order.
        lanes: The lanes, the disk and the world last.
        marks: The marks.
        strikes: Horizontal places of the strikes, with their text and whether it reads leftwards.
        left_out: How many entries are not drawn.
    """

    width: int
    height: int
    bands: tuple[tuple[int, int], ...]
    lanes: tuple[Lane, ...]
    marks: tuple[Mark, ...]
    strikes: tuple[tuple[int, str, bool], ...]
    left_out: int

    @property
    def slice(self) -> int:
        """How much of the width fits on a printed line."""
        return _PRINTED

    @property
    def slices(self) -> range:
        """Where the printed lines begin."""
        return range(0, self.width, _PRINTED)


def timeline(record: FailureRecord) -> Timeline:
    """Lay out the timeline of a failure."""
    return _drawn(
        record["history"],
        record["history_left_out"],
        {state["incarnation"]: _changes(state) for state in record["states"]},
        "incarnation {}",
        lambda row: f"✗ {row['text']}" if row["what"] == "struck" else "",
    )


def control_timeline(record: FailureRecord) -> Timeline | None:
    """Lay out the timeline of the control leg, or return None if nothing is known of it.

    What both legs did before the first strike stands at the same places; where the other leg was
    struck is marked.
    """
    control = record["control"]
    if not control["history"]:
        return None
    struck = next((row for row in record["history"] if row["what"] == "struck"), None)
    state = control["state"]

    def mark(row: HistoryRow) -> str:
        same = struck is not None and _place(row) == _place(struck) and row["what"] == "point"
        return f"{row['text']}, not struck" if same else ""

    disk = {1: f"durable at rest: {_held(state)}"} if state else {}
    return _drawn(control["history"], control["history_left_out"], disk, "control leg", mark)


def _place(row: HistoryRow) -> tuple[int, str, dict[str, int], dict[str, str]]:
    return row["incarnation"], row["text"], row["hits"], row["context"]


def _drawn(
    history: Sequence[HistoryRow],
    left_out: int,
    disk: Mapping[int, str],
    name: str,
    struck: Callable[[HistoryRow], str],
) -> Timeline:
    """Lay out lanes.

    Args:
        history: What happened.
        left_out: How many entries are not in it.
        disk: What to say of the durable state after an incarnation.
        name: Name of the lane of an incarnation.
        struck: What to write at an entry that a strike fell on; empty for every other one.
    """
    by_life: dict[int, list[HistoryRow]] = {}
    for row in history:
        by_life.setdefault(row["incarnation"], []).append(row)
    numbers = sorted(by_life)[:_LIVES]
    disk_y = TOP + LANE * len(numbers) + LANE // 2
    world_y = disk_y + LANE
    marks: list[Mark] = []
    bands: list[tuple[int, int]] = []
    lanes: list[Lane] = []
    strikes: list[tuple[int, str]] = []
    left_out += sum(len(by_life[n]) for n in sorted(by_life)[_LIVES:])
    x = _PAD
    for index, number in enumerate(numbers):
        y = TOP + LANE * index + LANE // 2
        kept = [
            (row, count)
            for lane in ("worker", "world")
            for row, count in _kept(by_life[number], lane)
        ]
        start = x
        facts_x = start + STEP
        for row, gap in kept:
            left_out += gap
            at_world = row["lane"] == "world"
            if at_world:
                facts_x += STEP
                marks.extend(_marks(row, gap, facts_x, world_y))
                continue
            marks.extend(_marks(row, gap, x, y))
            if text := struck(row):
                strikes.append((x, text))
            x += STEP
        # The end of the incarnation stands after what the world saw of it.
        end = max(x, facts_x + STEP)
        if number in disk:
            marks.append(Mark(end, disk_y, "disk", disk[number]))
        bands.append((start - STEP // 2, end + STEP // 2))
        lanes.append(Lane(name.format(number), y, start, x - STEP))
        x = end + 2 * STEP
    width = x + _PAD
    lanes += [Lane("disk", disk_y, _PAD, width - _PAD), Lane("world", world_y, _PAD, width - _PAD)]
    return Timeline(
        width=width,
        height=world_y + LANE // 2 + 4,
        bands=tuple(bands),
        lanes=tuple(lanes),
        marks=tuple(marks),
        strikes=tuple((at, text, at > width // 2) for at, text in strikes),
        left_out=left_out,
    )


def _kept(rows: list[HistoryRow], lane: str) -> list[tuple[HistoryRow, int]]:
    """Return the rows of a lane that are drawn, each with how many are left out before it."""
    own = [row for row in rows if row["lane"] == lane]
    if len(own) <= _LIFE_MARKS:
        return [(row, 0) for row in own]
    tail = _LIFE_MARKS - _HEAD
    gap = len(own) - _LIFE_MARKS
    return [
        *((row, 0) for row in own[:_HEAD]),
        (own[-tail], gap),
        *((row, 0) for row in own[1 - tail :]),
    ]


def _marks(row: HistoryRow, gap: int, x: int, y: int) -> list[Mark]:
    mark = Mark(x, y, row["what"], f"{row['order']}: {describe_row(row)}")
    return [Mark(x, y, "gap", f"{gap} entries are not drawn"), mark] if gap else [mark]


def describe_row(row: HistoryRow) -> str:
    """Say an entry of the history in one line."""
    context = ", ".join(f"{key}={value}" for key, value in row["context"].items())
    text = f"{row['text']} [{context}]" if context else row["text"]
    return f"KILLED at {text}" if row["what"] == "struck" else text


def _held(state: StateRow) -> str:
    found = [f"{table['table']} {table['total']}" for table in state["tables"] if table["total"]]
    files = sum(file["change"] != "removed" for file in state["files"])
    return ", ".join([*found, f"{files} file{'s' * (files != 1)}"])


def _changes(state: StateRow) -> str:
    found = []
    for table in state["tables"]:
        changes = [row["change"] for row in table["rows"] if row["change"] != "same"]
        if changes:
            counts = ", ".join(
                f"{changes.count(kind)} {kind}"
                for kind in ("added", "changed", "removed")
                if kind in changes
            )
            found.append(f"{table['table']}: {counts}")
    found += [
        f"{file['path']} {file['change']}"
        for file in state["files"]
        if file["change"] != "same" and not file["checksum"].startswith("rows:")
    ][:10]
    return f"durable {state['title']}: " + ("; ".join(found) or "nothing new")
