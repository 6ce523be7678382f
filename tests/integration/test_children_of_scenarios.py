"""What befalls children in scenarios: it happens, and to nobody else's children."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.experiment.handle import Experiment
from harness.model.result import Verdict
from harness.oracles.effects import read_ledger
from harness.world.coordinator.facts import ENDING_KINDS, read_facts
from scenarios.commands import COMMAND_KILLED, COMMAND_PID_REUSED

if TYPE_CHECKING:
    from pathlib import Path

    from harness.scenario import Scenario


def ends(world_dir: Path) -> list[tuple[str, str]]:
    """Return how each command but the fresh one ended."""
    events = read_facts(world_dir).events
    return [
        (e.command_id, e.kind) for e in events if e.kind in ENDING_KINDS and e.command_id != "fresh"
    ]


def effects(world_dir: Path) -> list[tuple[str, str]]:
    """Return the effects of children and strangers."""
    return [(e.kind, e.key) for e in read_ledger(world_dir) if e.kind != "command_end"]


def struck(experiment: Experiment) -> None:
    """Kill the first life when the identity of its child is saved."""
    life = experiment.start()
    life.run_until("process.wait.before")
    life.kill()


@pytest.mark.requirement("PRC-03", "PRC-05", "CP-H3", "CP-H4")
@pytest.mark.parametrize(
    ("scenario", "end", "left"),
    [
        (COMMAND_KILLED, "unknown", [("process", "p1")]),
        (
            COMMAND_PID_REUSED,
            "succeeded",
            [("process", "p1"), ("process_end", "p1"), ("stranger", "p1")],
        ),
    ],
    ids=["killed", "pid reused"],
)
def test_what_befalls_a_child_while_the_worker_is_down(
    scenario: Scenario, end: str, left: list[tuple[str, str]]
) -> None:
    """A child that was killed, or whose pid is now another's, is judged by what is there."""
    with Experiment(scenario) as x:
        struck(x)
        x.settle()
        assert effects(x.world_dir) == left
        assert ends(x.world_dir) == [("p1", end)]
        assert x.check().verdict is Verdict.HELD


@pytest.mark.requirement("HAR-04", "PRC-07")
def test_experiments_at_once_leave_each_other_s_children_alone() -> None:
    """With one seed their tokens have the same names, and still they are kept apart."""
    with Experiment(COMMAND_KILLED) as one, Experiment(COMMAND_PID_REUSED) as other:
        struck(one)
        struck(other)
        one.settle()
        assert ends(one.world_dir) == [("p1", "unknown")]
        assert effects(other.world_dir) == [("process", "p1")]
        other.settle()
        assert ends(other.world_dir) == [("p1", "succeeded")]
