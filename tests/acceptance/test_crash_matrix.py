"""Section 7's matrix, cell by cell: one command, killed at a point, and started again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import pytest

from harness.lane import Lane
from harness.result import Verdict
from harness.schedule import parse
from harness.workspace import default_root
from harness.world.facts import ENDING_KINDS, read_facts
from harness.world.file_server import FileServer
from harness.world.receiver import Receiver
from scenarios.capabilities import (
    BIG_FILE,
    PUBLISHED_TREE,
    SOURCES,
    child,
    notify,
    offers,
    render,
    render_service,
    transfer,
    unpack,
)
from scenarios.capability_rules import asks, capability_scenario, effects_of_commands
from scenarios.reference_books import read_books

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.rig import Halt
    from harness.workload import Command

FILES = partial(FileServer, SOURCES)
EXPORTED = {"part.txt": b"text"}
EXPORT = asks("x1", "export", {"name": "x", "parts": [{"name": "part.txt", "text": "text"}]})


@dataclass(frozen=True)
class Cell:
    """What a kill must come to.

    Attributes:
        decision: What the restart decides about the attempt; empty if there is nothing to decide.
        end: How the command ends.
        effects: How many effects it has outside.
    """

    decision: str
    end: str = "succeeded"
    effects: int = 0


@dataclass(frozen=True)
class Kind:
    """A column of the matrix: a command, where its B points are, and what becomes of it there."""

    command: Command
    service: object
    contents: dict[str, bytes]
    places: dict[str, str]
    cells: dict[str, Cell]
    effects: int = 0

    def at(self, point: str) -> Cell:
        """Return what must become of a kill at a point: what is equal for all kinds first."""
        if point in ("A1", "A2", "A3", "C3", "D1", "D2", "D4", "D5"):
            return Cell("", effects=self.effects)
        if point in ("A4", "A5", "A6"):
            return Cell("start", effects=self.effects)
        if point in ("C1", "C2"):
            return self.cells["B5"]
        return self.cells["B2" if point.startswith("F") else point]


EVERYWHERE = {
    "A1": "command.receive.after",
    "A2": "inbox.save.mid",
    "A3": "inbox.commit.before",
    "A4": "ack.send.before",
    "A5": "ack.send.after",
    "A6": "attempt.start.before",
    "B1": "capability.run.before",
    "B5": "capability.run.after",
    "C1": "result.save.mid",
    "C2": "result.commit.before",
    "C3": "result.commit.after",
    "D1": "event.send.before",
    "D2": "event.send.after",
    "D4": "event.mark.mid",
    "D5": "event.mark.after",
}
IN_RECOVERY = {
    "F1": "store.open.before",
    "F3": "recovery.decide.after",
    "F4": "recovery.decide.before",
    "F5": "recovery.scan.after",
}
B = ("B1", "B2", "B3", "B4", "B5")
POINTS = sorted({*EVERYWHERE, *IN_RECOVERY, *B})


def inside(
    command: Command, decision: str, contents: dict[str, bytes], places: dict[str, str]
) -> Kind:
    """Return the column of work that leaves nothing outside."""
    cells = dict.fromkeys(B, Cell(decision))
    return Kind(command, FILES, contents, places, cells)


def outside(
    command: Command,
    service: object,
    places: dict[str, str],
    *,
    b2: Cell,
    b3: Cell,
    b4: Cell,
    b5: Cell,
) -> Kind:
    """Return the column of work with an effect; at B1 no call can have happened."""
    cells = {"B1": Cell("start", effects=1), "B2": b2, "B3": b3, "B4": b4, "B5": b5}
    return Kind(command, service, {}, places, cells, effects=1)


def of_render(*, idempotent: bool, lookup: bool, b2: Cell, b3: Cell) -> Kind:
    """Return the column of a render service; from B4 on the job id is saved."""
    places = {
        "B2": "render.create.before",
        "B3": "render.create.after",
        "B4": "render.query.before",
    }
    service = render_service(idempotent=idempotent, lookup=lookup)
    asked = Cell("query", effects=1)
    return outside(render("r1"), service, places, b2=b2, b3=b3, b4=asked, b5=asked)


def of_notify(*, honours: bool, b2: Cell, b3: Cell) -> Kind:
    """Return the column of a receiver."""
    places = {"B2": "notify.send.before", "B3": "notify.send.after", "B4": "notify.send.after"}
    service = partial(Receiver, honours_keys=honours)
    return outside(notify("n1"), service, places, b2=b2, b3=b3, b4=b3, b5=b3)


QUERY, REPEAT, FIND = (Cell(each, effects=1) for each in ("query", "repeat", "find_process"))
NOT_SENT, SENT = (Cell("unknown", "unknown", effects) for effects in (0, 1))

KINDS = {
    "compute": inside(
        asks("c1", "compute", {"seed": "s", "rounds": 4}),
        "recompute",
        {},
        dict.fromkeys(("B2", "B3", "B4"), "compute.half.after"),
    ),
    "export": inside(
        EXPORT,
        "resume",
        EXPORTED,
        {"B2": "artifact.write.before", "B3": "artifact.write.mid", "B4": "checkpoint.save.after"},
    ),
    "transfer": inside(
        transfer("t1"),
        "resume",
        BIG_FILE,
        {
            "B2": "transfer.request.before",
            "B3": "transfer.offset.before",
            "B4": "checkpoint.save.after",
        },
    ),
    "unpack": inside(
        unpack("u1"),
        "recompute",
        PUBLISHED_TREE,
        {"B2": "tree.create.after", "B3": "unpack.entry.after", "B4": "tree.rename.after"},
    ),
    "render idempotent": of_render(idempotent=True, lookup=False, b2=QUERY, b3=QUERY),
    # Not found proves nothing, and a second create would: what was never sent stays unknown.
    "render lookup": of_render(
        idempotent=False, lookup=True, b2=Cell("query", "unknown", 0), b3=QUERY
    ),
    "render both": of_render(idempotent=True, lookup=True, b2=QUERY, b3=QUERY),
    "render neither": of_render(idempotent=False, lookup=False, b2=NOT_SENT, b3=SENT),
    "notify keys": of_notify(honours=True, b2=REPEAT, b3=REPEAT),
    "notify no keys": of_notify(honours=False, b2=NOT_SENT, b3=SENT),
    "command": outside(
        child("p1"),
        None,
        {"B2": "checkpoint.save.after", "B3": "process.spawn.after", "B4": "process.wait.before"},
        b2=FIND,
        b3=FIND,
        b4=FIND,
        b5=FIND,
    ),
}


class Column:
    """A lane that is warmed for the worker of one kind."""

    def __init__(self, name: str, kind: Kind) -> None:
        self._kind = kind
        service = () if kind.service is None else (cast("partial[FileServer]", kind.service),)
        command = kind.command
        scenario = capability_scenario(
            f"matrix-{name.replace(' ', '-')}",
            offers(command),
            service,
            {command.command_id: kind.contents},
        )
        self._name = scenario.name
        self._lane = Lane(default_root())
        self._lane.call("prepare", scenario)

    def stop(self) -> None:
        """End the lane."""
        self._lane.stop()

    def kill_at(self, *labels: str) -> tuple[list[str], Cell]:
        """Kill a life at each label, let the worker recover, and say what came of it.

        Returns:
            What each life decided, and what the last one came to.
        """
        command_id = self._kind.command.command_id
        worker_dir, world_dir = cast("tuple[Path, Path]", self._lane.call("open", self._name, 0))
        try:
            for label in labels:
                unscoped = label.startswith("store.") or label == "recovery.scan.after"
                scope = "" if unscoped else f"[command={command_id}]"
                (moment,) = parse(f"{label}{scope}=kill").moments
                number = self._lane.call("verb", "start", "same")
                halt = cast("Halt", self._lane.call("verb", "run_until", number, moment))
                assert halt.hit is not None, f"{label} was not reached"
                assert halt.hit.label == label
                self._lane.call("verb", "kill", number)
            self._lane.call("settle")
            books = read_books(worker_dir)
            facts = read_facts(world_dir)
            effects = Counter(effects_of_commands(world_dir))[command_id]
            verdict, violations, note = cast(
                "tuple[Verdict, object, str]", self._lane.call("check")
            )
            assert verdict is Verdict.HELD, (violations, note)
        finally:
            self._lane.call("close")
        decisions = [row.decision for row in books.decisions]
        (end,) = (e.kind for e in facts.events if e.kind in ENDING_KINDS)
        return decisions, Cell(decisions[-1] if decisions else "", end, effects)


@pytest.fixture(scope="module")
def columns() -> Iterator[dict[str, Column]]:
    """Give the lanes that are made so far, and end them."""
    made: dict[str, Column] = {}
    yield made
    for column in made.values():
        column.stop()


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", KINDS)
def test_cell(columns: dict[str, Column], name: str, point: str) -> None:
    """Section 7, REC-01..REC-04, REC-09..REC-14, REC-17, UNK-01..UNK-03, PRC-01, PRC-02, INV-3."""
    kind = KINDS[name]
    if name not in columns:
        for column in columns.values():
            column.stop()
        columns.clear()
        columns[name] = Column(name, kind)
    label = {**EVERYWHERE, **kind.places}
    labels = (label["B2"], IN_RECOVERY[point]) if point in IN_RECOVERY else (label[point],)
    decisions, came_to = columns[name].kill_at(*labels)
    wanted = kind.at(point)
    assert came_to == wanted
    assert set(decisions) <= {wanted.decision}
