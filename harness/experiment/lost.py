"""When a process of the harness is lost: what it left, and what its experiment comes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.images.scratch import sweep_scratch
from harness.model.result import ExperimentResult, Verdict
from harness.processes.family_mark import end_marked

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.errors import ProcessLostError
    from harness.model.schedule import Schedule


def clear_up_after_the_dead(root: Path) -> tuple[str, ...]:
    """End the processes and delete the scratch directories of lanes that are gone.

    Args:
        root: Directory for workspaces; those that other runs were given are looked at as well.

    Returns:
        What could not be deleted, a sentence each.
    """
    directories = sorted({root.absolute(), *end_marked()})
    return tuple(left for directory in directories for left in sweep_scratch(directory))


def lost_in_warm_up(scenario: str, error: ProcessLostError) -> str:
    """Say of a scenario what was lost in its warm-up.

    Args:
        scenario: Its name.
        error: What was lost.
    """
    return f"during the warm-up of {scenario!r}, {error.what} {error.fate}"


def lost_result(
    scenario: str,
    schedule: Schedule,
    seed: int,
    first: ProcessLostError,
    second: ProcessLostError,
) -> ExperimentResult:
    """Return what an experiment comes to that cannot be run to its end.

    Args:
        scenario: Name of its scenario.
        schedule: Its schedule.
        seed: Its seed.
        first: What was lost when it was run.
        second: What was lost when it was run once more.
    """
    how = [f"{error.what} {error.fate}" for error in (first, second)]
    then = "and so it was again" if how[0] == how[1] else f"and then {how[1]}"
    note = (
        f"while the experiment ran, {how[0]}, {then} when it was run once more; the harness does "
        "not do that, so it was the worker, or somebody outside"
    )
    return ExperimentResult(scenario, schedule, seed, Verdict.WRONG_DEATH, note=note)
