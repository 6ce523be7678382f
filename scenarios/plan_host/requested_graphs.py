"""The graphs that a plan host is asked to run, and how they change after a crash."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

from harness.model.workload import Command, Workload
from harness.oracles.mailbox.worker_state import GraphRow, StepRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.model.canonical_json import JsonObject


class _StepFields(TypedDict):
    id: str
    depends_on: list[str]
    isolated: bool
    listed: bool


class _Body(TypedDict):
    graphs: list[list[_StepFields]]


def steps(text: str) -> list[JsonObject]:
    """Read the short notation of `tests/unit/checkpoint/build_plan_examples.txt`.

    Args:
        text: ``a b! c<a,b d[]``: ``!`` isolated, ``<`` depends on, ``[]`` an empty list of
            dependencies, which declares nothing.
    """
    return [_step(word) for word in text.split()]


def _step(word: str) -> JsonObject:
    declared, _, names = word.partition("<")
    return {
        "id": declared.rstrip("![]"),
        "depends_on": names.split(",") if names else [],
        "isolated": declared.endswith("!"),
        "listed": declared.endswith("[]"),
    }


def run(command_id: str, *graphs: str) -> Command:
    """Return the command that asks for a run.

    Args:
        command_id: Its id, which names the run.
        *graphs: The graph, then the one that is in force after the first crash, and so on; the
            last one stays.
    """
    return Command(command_id, {"graphs": [steps(graph) for graph in graphs]})


def requesting(*commands: Command, fresh: str = "a b") -> Callable[[int], Workload]:
    """Return the workload that requests runs; the fresh one has a graph of its own."""
    workload = Workload(commands, fresh=run("fresh", fresh))
    return lambda _seed: workload


def graph_of(command: Command, crashes: int) -> list[_StepFields]:
    """Return the steps of a command's graph that are in force after some crashes."""
    graphs = cast("_Body", command.body)["graphs"]
    return graphs[min(crashes, len(graphs) - 1)]


def requested_graphs(workload: Workload, crashes: int) -> tuple[GraphRow, ...]:
    """Return the graphs in neutral terms, for oracles."""
    return tuple(
        rows_of(command.command_id, graph_of(command, crashes))
        for command in (*workload.commands, workload.fresh)
    )


def rows_of(run_id: str, requested: object) -> GraphRow:
    """Return a graph in neutral terms.

    Args:
        run_id: Its run.
        requested: Its steps as a command has them.
    """
    return GraphRow(
        run_id,
        tuple(
            StepRow(step["id"], tuple(step["depends_on"]), isolated=step["isolated"])
            for step in cast("list[_StepFields]", requested)
        ),
    )
