"""The columns of the crash matrix: what is asked for, and what must become of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from harness.experiment.rig import IDENTITY
from harness.model.workload import Command, ReplyLost, Workload
from harness.oracles.effects import read_ledger
from harness.scenario import HOLDS
from harness.world.services.effects import REPEAT
from harness.world.services.file_server import FileServer
from harness.world.services.receiver import Receiver
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
from scenarios.plan_host.requested_graphs import steps
from scenarios.workflow import PARTS, workflow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from harness.model.canonical_json import JsonObject
    from harness.scenario import Scenario
    from harness.world.service import Service

FILES = partial(FileServer, SOURCES)
B = ("B1", "B2", "B3", "B4", "B5")


@dataclass(frozen=True)
class Cell:
    """What a kill must come to.

    Attributes:
        decision: What the restart decides about the attempt; empty if there is nothing to decide.
        end: How the command ends.
        effects: How many effects it has outside.
        again: The steps that are asked for again, under the keys that they had.
    """

    decision: str
    end: str = "succeeded"
    effects: int = 0
    again: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kind:
    """A column.

    Attributes:
        command: The command.
        scenario: Its scenario, made from a name.
        places: The labels of the points that are the kind's own.
        cells: What becomes of a kill at them.
        effects: How many effects the command has when nothing happens.
    """

    command: Command
    scenario: Callable[[str], Scenario]
    places: Mapping[str, str]
    cells: Mapping[str, Cell]
    effects: int = 0

    @property
    def undisturbed(self) -> Cell:
        """What becomes of the command where there is nothing to decide."""
        return Cell("", effects=self.effects)

    @property
    def started(self) -> Cell:
        """What becomes of the command where it is started after the restart."""
        return Cell("start", effects=self.effects)


def losing_replies(name: str, kind: Kind) -> Scenario:
    """Return a kind's scenario in which the reply to its event is lost, and one registration's.

    The second registration is the one of the second life.
    """
    scenario = kind.scenario(name)
    lost = (ReplyLost("event", kind.command.command_id), ReplyLost("register", IDENTITY, nth=2))
    return replace(scenario, workload=partial(_with_lost, scenario.workload, lost))


def _with_lost(draw: Callable[[int], Workload], lost: tuple[ReplyLost, ...], seed: int) -> Workload:
    return replace(draw(seed), lost=lost)


def effects_of(command_id: str, world_dir: Path) -> int:
    """Count the effects of a command: in the services, by children, and of steps."""
    of_steps = [e.key for e in read_ledger(world_dir) if e.kind == "step"]
    owners = (*effects_of_commands(world_dir), *(key.partition("/")[0] for key in of_steps))
    return owners.count(command_id)


def steps_again(command_id: str, world_dir: Path) -> tuple[str, ...]:
    """Return the steps of a command that were asked for again."""
    kind, run = f"step{REPEAT}", f"{command_id}/"
    return tuple(
        e.key.removeprefix(run)
        for e in read_ledger(world_dir)
        if e.kind == kind and e.key.startswith(run)
    )


def _scenario(command: Command, service: object, contents: dict[str, bytes], name: str) -> Scenario:
    services = () if service is None else (cast("Callable[[], Service]", service),)
    return capability_scenario(name, offers(command), services, {command.command_id: contents})


def inside(
    command: Command, decision: str, contents: dict[str, bytes], places: dict[str, str]
) -> Kind:
    """Return the column of work that leaves nothing outside."""
    cells = dict.fromkeys(B, Cell(decision))
    return Kind(command, partial(_scenario, command, FILES, contents), places, cells)


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
    return Kind(command, partial(_scenario, command, service, {}), places, cells, effects=1)


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


def of_workflow() -> Kind:
    """Return the column of a graph of steps, of which the record of the last fails at first."""
    command = _graph("w1")
    all_done = Cell("resume", effects=len(GRAPH.split()))
    first_again = replace(all_done, again=("a",))
    places = {
        "B2": "step.run.before",
        "B3": "step.run.after",
        "B4": "step.record.after",
        "B6": "step.run.after",
        "B7": "step.record.after",
        "E1": "snapshot.accept.after",
        "E2": "snapshot.save.mid",
        "E3": "steps.save.after",
        "E4": "snapshot.release.before",
        "E5": "snapshot.commit.after",
        "F2": "gate.seed.before",
    }
    cells = {
        **dict.fromkeys((*B, *places), all_done),
        **dict.fromkeys(("B3", "B6", "E1", "E2"), first_again),
        "E4": replace(all_done, again=("c",)),
    }
    return Kind(command, _workflow, places, cells, all_done.effects)


GRAPH = "a b c"


def _graph(command_id: str) -> Command:
    payload: JsonObject = {"steps": steps(GRAPH)}
    return Command(command_id, {"capability": "workflow", "version": 1, "payload": payload})


def _workflow(name: str) -> Scenario:
    return replace(workflow(name, PARTS, HOLDS), workload=_one_workflow)


def _one_workflow(_seed: int) -> Workload:
    return Workload((_graph("w1"),), fresh=_graph("fresh"), twice=frozenset({"w1"}))


QUERY, REPEATED, FIND = (Cell(each, effects=1) for each in ("query", "repeat", "find_process"))
NOT_SENT, SENT = (Cell("unknown", "unknown", effects) for effects in (0, 1))

KINDS = {
    "compute": inside(
        asks("c1", "compute", {"seed": "s", "rounds": 4}),
        "recompute",
        {},
        dict.fromkeys(("B2", "B3", "B4"), "compute.half.after"),
    ),
    "export": inside(
        asks("x1", "export", {"name": "x", "parts": [{"name": "part.txt", "text": "text"}]}),
        "resume",
        {"part.txt": b"text"},
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
    "notify keys": of_notify(honours=True, b2=REPEATED, b3=REPEATED),
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
    "workflow": of_workflow(),
}
