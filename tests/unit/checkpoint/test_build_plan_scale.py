"""`build_plan` on large graphs, in other processes, and with the world shut off."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from worker_under_test.checkpoint import Snapshot, StepDef, build_plan, check_graph

STEPS = 100_000
LIMIT_S = 2.0


def chain() -> list[StepDef]:
    """Undeclared steps only."""
    return [StepDef(f"s{n}") for n in range(STEPS)]


def named_chain() -> list[StepDef]:
    """Each step names the one before."""
    return [StepDef("s0"), *(StepDef(f"s{n}", depends_on=[f"s{n - 1}"]) for n in range(1, STEPS))]


def backward_chain() -> list[StepDef]:
    """Each step names the one after: run turns the graph around."""
    last = StepDef(f"s{STEPS - 1}", isolated=True)
    return [*(StepDef(f"s{n}", depends_on=[f"s{n + 1}"]) for n in range(STEPS - 1)), last]


def fan_out() -> list[StepDef]:
    """One root, 10,000 lanes, and an undeclared join."""
    lanes = [StepDef(f"s{n}", depends_on=["root"]) for n in range(10_000)]
    return [StepDef("root"), *lanes, StepDef("join")]


def fan_in() -> list[StepDef]:
    """10,000 isolated steps and one that names them all."""
    lanes = [StepDef(f"s{n}", isolated=True) for n in range(10_000)]
    return [*lanes, StepDef("join", depends_on=[step.id for step in lanes])]


def ladder() -> list[StepDef]:
    """Two rails, each rung waiting for both ends of the one before: paths without number."""
    return [
        StepDef(f"s{2 * rung + rail}", depends_on=[f"s{2 * rung - 1}", f"s{2 * rung - 2}"])
        if rung
        else StepDef(f"s{rail}", isolated=True)
        for rung in range(STEPS // 2)
        for rail in range(2)
    ]


@pytest.mark.requirement("PLN-31")
@pytest.mark.parametrize("shape", [chain, named_chain, backward_chain, fan_out, fan_in, ladder])
def test_large_graphs(shape: object) -> None:
    """No recursion, and well under two seconds of work, with half of the steps done."""
    assert callable(shape)
    graph: list[StepDef] = shape()
    done = [step.id for step in graph[: len(graph) // 2]]
    began = time.process_time()
    first = build_plan(graph, None)
    took_s = time.process_time() - began
    assert sorted(first.run) == sorted(step.id for step in graph)
    resumed = build_plan(graph, Snapshot("run", 1, "running", done))
    assert len(resumed.skip) + len(resumed.run) == len(graph)
    assert check_graph(graph) == ()
    assert took_s < LIMIT_S


@pytest.mark.requirement("PLN-31", "STP-16", "STP-17")
def test_a_cycle_of_every_step() -> None:
    """The worst defects, rings of every step, end as well."""
    steps = [StepDef(f"s{n}") for n in range(20_000)]
    ring = [
        replace(step, depends_on=[steps[n - 1].id]) for n, step in enumerate(steps)
    ]  # the first one names the last one
    implied = [ring[0], *steps[1:]]
    done = Snapshot("run", 1, "running", [step.id for step in steps])
    for graph in (ring, implied):
        plan = build_plan(graph, done)
        assert (plan.skip, sorted(plan.run)) == ((), sorted(step.id for step in steps))
        assert len(check_graph(graph)) == 1


IN_ANOTHER_PROCESS = """
import sys
from pathlib import Path
from plan_notation import read_examples
from worker_under_test.checkpoint import build_plan

examples = read_examples(Path(sys.argv[1]))

def shut(event, args):
    if event.split(".")[0] in ("open", "socket", "subprocess", "os", "sqlite3"):
        raise RuntimeError(f"planning touched the world: {event}")

sys.addaudithook(shut)
plans = [build_plan(example.graph, example.snapshot) for example in examples]
print(ascii(plans))
"""


@pytest.mark.requirement("PLN-01")
def test_other_processes_plan_the_same_without_the_world() -> None:
    """Plans are equal whatever the hash seed, with files, sockets and processes shut off."""
    here = Path(__file__).parent
    outputs = [
        subprocess.run(
            [sys.executable, "-c", IN_ANOTHER_PROCESS, here / "build_plan_examples.txt"],
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": os.pathsep.join([str(here), *sys.path]),
            },
            capture_output=True,
            check=True,
            text=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0].count("Plan(") == 118
