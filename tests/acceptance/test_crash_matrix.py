"""The crash matrix, cell by cell: one command, killed at a point, and started again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from matrix_column import Column
from matrix_kinds import KINDS, Cell, Kind

from scenarios.capability_rules import asks
from scenarios.reference import control

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def nothing(kind: Kind) -> Cell:
    """Nothing is to be decided."""
    return kind.undisturbed


def start(kind: Kind) -> Cell:
    """It never began, and is started."""
    return kind.started


def as_at(point: str) -> Callable[[Kind], Cell]:
    """What the kind has at a point."""
    return lambda kind: kind.cells[point]


@dataclass(frozen=True)
class Row:
    """A row of the matrix.

    Attributes:
        strikes: Where each life is killed: a label, or a point whose label is the kind's own.
        durable: What is durable of the command at the last kill.
        cell: What it must come to.
        lossy: Whether replies are lost: the first to the command's event, and the second to a
            registration.
    """

    strikes: tuple[str, ...]
    durable: str
    cell: Callable[[Kind], Cell]
    lossy: bool = False


def recovering(label: str) -> Row:
    """Return a row in the recovery of a worker that was killed at B2."""
    return Row(("B2", label), "begun", as_at("B2"))


ROWS = {
    "A1": Row(("command.receive.after",), "none", nothing),
    "A2": Row(("inbox.save.mid",), "none", nothing),
    "A3": Row(("inbox.commit.before",), "none", nothing),
    "A4": Row(("ack.send.before",), "pending", start),
    "A5": Row(("ack.send.after",), "pending", start),
    "A6": Row(("attempt.start.before",), "pending", start),
    "B1": Row(("capability.run.before",), "begun", as_at("B1")),
    "B2": Row(("B2",), "begun", as_at("B2")),
    "B3": Row(("B3",), "begun", as_at("B3")),
    "B4": Row(("B4",), "begun", as_at("B4")),
    "B5": Row(("capability.run.after",), "begun", as_at("B5")),
    "C1": Row(("result.save.mid",), "begun", as_at("B5")),
    "C2": Row(("result.commit.before",), "begun", as_at("B5")),
    "C3": Row(("result.commit.after",), "unsent", nothing),
    "D1": Row(("event.send.before",), "unsent", nothing),
    # The server has it, and its reply is lost on the wire: the sender has begun to wait.
    "D2": Row(("backoff.wait.before",), "known to the server", nothing, lossy=True),
    "D3": Row(("event.send.after",), "known to the server", nothing),
    "D4": Row(("event.mark.mid",), "known to the server", nothing),
    "D5": Row(("event.mark.after",), "reported", nothing),
    # The wait of a life that found an event unsent and has not registered yet.
    "D6": Row(("event.send.before", "backoff.wait.before"), "unsent", nothing, lossy=True),
    "F1": recovering("store.open.before"),
    "F3": recovering("recovery.decide.after"),
    "F4": recovering("recovery.decide.before"),
    "F5": recovering("recovery.scan.after"),
}

OF_STEPS = {
    "B6": Row(("B6",), "begun", as_at("B6")),
    "B7": Row(("B7",), "begun", as_at("B7")),
    "E1": Row(("E1",), "begun", as_at("E1")),
    "E2": Row(("E2",), "begun", as_at("E2")),
    "E3": Row(("E3",), "begun", as_at("E3")),
    "E4": Row(("E4",), "begun", as_at("E4")),
    "E5": Row(("E5",), "begun", as_at("E5")),
    "F2": Row(("B7", "F2"), "begun", as_at("F2")),
}
"""Rows of `workflow` alone: no other kind has steps, snapshots or a gate to seed.

"The same for all kinds" is there the same for all steps, since a step has one recovery rule: it is
asked for again under the key that it had.
"""

DRAINS = {
    "K1": ("order.commit.before", False),
    "K2": ("order.apply.before", True),
}
"""Where a life is killed that is told to drain, and whether the marker is saved there."""

CELLS = [
    *((name, point) for name in KINDS for point in ROWS),
    *(("workflow", point) for point in OF_STEPS),
]
DRAIN_CELLS = [(name, point) for name in KINDS for point in DRAINS]


@pytest.fixture(scope="module")
def columns() -> Iterator[dict[str, Column]]:
    """Give the lanes that are made so far, and end them."""
    made: dict[str, Column] = {}
    yield made
    for column in made.values():
        column.stop()


@pytest.fixture
def column(columns: dict[str, Column], name: str) -> Iterator[Column]:
    """Give the lane of a column; there is one at a time."""
    if name not in columns:
        for other in columns.values():
            other.stop()
        columns.clear()
        columns[name] = Column(name, KINDS[name])
    yield columns[name]
    columns[name].close()


@pytest.mark.requirement("HAR-01")
def test_every_row_of_the_matrix_has_its_cells() -> None:
    """The cells are counted, so that none is lost; those of steps are one kind's."""
    letters = Counter(point[0] for point in (*ROWS, *OF_STEPS, *DRAINS))
    assert letters == {"A": 6, "B": 7, "C": 3, "D": 6, "E": 5, "F": 5, "K": 2}
    assert len(CELLS) + len(DRAIN_CELLS) == 320


@pytest.mark.requirement("REC-01..REC-04", "REC-09..REC-14", "REC-17", "UNK-01..UNK-03")
@pytest.mark.requirement("PRC-01", "PRC-02", "INV-3")
@pytest.mark.requirement("ORC-04", "ORC-06", "PLN-30", "COM-12", "INV-7", "INV-8")
@pytest.mark.parametrize(("name", "point"), CELLS)
def test_cell(column: Column, name: str, point: str) -> None:
    """Killed at the point and started again, the worker ends as its kind of work demands."""
    kind, row = KINDS[name], {**ROWS, **OF_STEPS}[point]
    column.open(lossy=row.lossy)
    for strike in row.strikes:
        column.kill_at(kind.places.get(strike, strike))
    came_to = column.finish()
    wanted = row.cell(kind)
    assert came_to.durable == row.durable
    assert came_to.cell == wanted
    assert came_to.decisions <= {wanted.decision}


@pytest.mark.requirement("DRN-01..DRN-04", "DRN-06", "INV-14")
@pytest.mark.parametrize(("name", "point"), DRAIN_CELLS)
def test_a_worker_that_is_told_to_drain_and_killed(column: Column, name: str, point: str) -> None:
    """The saved marker decides, whatever kind of work was running.

    The command had begun before: it is recovered by its own rule, while a new one is refused until
    the worker is told otherwise. A drain that was not saved comes again, since nobody confirmed it.
    """
    kind = KINDS[name]
    label, saved = DRAINS[point]
    column.open()
    column.kill_at(kind.places["B2"])
    column.offer(control("d", "drain"))
    column.kill_at(label)
    assert column.draining() is saved
    assert not column.acknowledged("d")
    column.offer(asks("late", "compute", {"seed": "late", "rounds": 2}))
    column.settle()
    assert column.acknowledged("d")
    assert set(column.refusals("late")) == {"draining"}
    assert column.ends("late") == 0
    column.offer(control("u", "undrain"))
    came_to = column.finish()
    assert came_to.cell == kind.cells["B2"]
    assert came_to.decisions == {kind.cells["B2"].decision}
    assert not column.draining()
    assert column.ends("late") == column.ends("d") == 1
