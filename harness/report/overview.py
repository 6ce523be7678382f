"""The matrix at a glance: crash points down, scenarios across, the worst outcome in each cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.report.matrix_svg import Picture

CELL = 18
LEFT = 210
_ROWS = 200
_COLUMNS = 60
_TOP = 20
_CHAR_PX = 4.4
_MARKS = {"held": "", "broken": "✗", "other": "?", "missed": "–"}


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell.

    Attributes:
        x: Horizontal place.
        y: Vertical place.
        outcome: ``held``, ``broken``, ``other`` or ``missed``: declared and never reached.
        mark: A sign, so that colour is not all that tells.
        text: What it says, or empty where there is nothing to say.
    """

    x: int
    y: int
    outcome: str
    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The drawing.

    Attributes:
        width: Its width.
        height: Its height.
        top: Where the first row begins.
        columns: Names of the scenarios with their places.
        rows: Labels of the points with their places.
        cells: The cells.
        left_out: How many points and scenarios are not drawn.
    """

    width: int
    height: int
    top: int
    columns: tuple[tuple[str, int], ...]
    rows: tuple[tuple[str, int], ...]
    cells: tuple[Cell, ...]
    left_out: int


def overview(pictures: list[Picture]) -> Overview:
    """Draw the scenarios beside each other."""
    labels = list(dict.fromkeys(row.label for picture in pictures for row in picture.rows))
    shown, drawn = labels[:_ROWS], pictures[:_COLUMNS]
    longest = max((len(picture.scenario) for picture in drawn), default=0)
    top = _TOP + int(longest * _CHAR_PX * 1.2)
    places = {label: top + index * CELL for index, label in enumerate(shown)}
    cells = []
    for column, picture in enumerate(drawn):
        for row in picture.rows:
            if row.label in places:
                held, broken, *other = row.counts
                outcome = (
                    "broken" if broken else "other" if any(other) else "held" if held else "missed"
                )
                counted = f"{held} held, {broken} broken, {sum(other)} other"
                text = "" if outcome == "held" else f"{picture.scenario}, {row.label}: {counted}"
                x = LEFT + column * CELL
                cells.append(Cell(x, places[row.label], outcome, _MARKS[outcome], text))
    return Overview(
        width=LEFT + len(drawn) * CELL + int(longest * _CHAR_PX * 1.4) + 10,
        height=top + len(shown) * CELL + 4,
        top=top,
        columns=tuple((p.scenario, LEFT + n * CELL + CELL // 2) for n, p in enumerate(drawn)),
        rows=tuple(places.items()),
        cells=tuple(cells),
        left_out=len(labels) - len(shown) + len(pictures) - len(drawn),
    )
