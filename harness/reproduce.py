"""Run a recorded failure again, and say whether it is still there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.lane import Job
from harness.outcome import ExitCode
from harness.record import FAILURE, FAILURE_SCHEMA
from harness.result import Verdict
from harness.schedule import CONTROL, Schedule, parse

if TYPE_CHECKING:
    from pathlib import Path

    from harness.explore.executor import Executor
    from harness.result import ExperimentResult
    from harness.scenario import Scenario


class Reproduction(StrEnum):
    """What came of running a failure again."""

    STILL_BROKEN = "still broken"
    HOLDS_NOW = "holds now"
    DID_NOT_REPRODUCE = "did not reproduce"

    @property
    def exit_code(self) -> ExitCode:
        """What the command returns for it."""
        return {
            Reproduction.STILL_BROKEN: ExitCode.BROKEN,
            Reproduction.HOLDS_NOW: ExitCode.AS_PINNED,
            Reproduction.DID_NOT_REPRODUCE: ExitCode.INCONCLUSIVE,
        }[self]


@dataclass(frozen=True, slots=True)
class Failure:
    """A recorded failure.

    Attributes:
        fingerprint: Its identity.
        scenarios_from: Where its scenario was loaded from.
        scenario: Name of the scenario.
        schedule: The strikes.
        seed: The seed.
    """

    fingerprint: str
    scenarios_from: str
    scenario: str
    schedule: Schedule
    seed: int


def read_failure(path: Path) -> Failure:
    """Read a recorded failure.

    Args:
        path: A failure's folder, or the ``failure.json`` in it.

    Raises:
        UsageError: There is none, or it is of another version.
    """
    file = path / FAILURE if path.is_dir() else path
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"no recorded failure at {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file} is not JSON: {error}") from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != FAILURE_SCHEMA:
        raise UsageError(f"{file} has schema {schema!r}; this version reads {FAILURE_SCHEMA!r}")
    fields = {
        "fingerprint": str,
        "scenarios_from": str,
        "scenario": str,
        "schedule": str,
        "seed": int,
    }
    for name, kind in fields.items():
        if type(data.get(name)) is not kind:
            raise UsageError(f"{file}: {name!r} is missing or no {kind.__name__}")
    return Failure(
        data["fingerprint"],
        data["scenarios_from"],
        data["scenario"],
        parse(data["schedule"]),
        data["seed"],
    )


def run_again(
    failure: Failure, scenario: Scenario, executor: Executor, times: int
) -> tuple[Reproduction, tuple[ExperimentResult, ...]]:
    """Run the control leg once and the failure a number of times.

    Args:
        failure: What to run.
        scenario: Its scenario.
        executor: Runs it.
        times: How often.

    Returns:
        *Still broken* if every run has the recorded fingerprint, *holds now* if every run held,
        *did not reproduce* for anything else; and the results, the control leg first.
    """
    executor.prepare([scenario])
    again = Job(scenario.name, failure.schedule, failure.seed)
    jobs = [Job(scenario.name, CONTROL, failure.seed), *[again] * times]
    by_index = dict(executor.run(jobs))
    results = tuple(by_index[index] for index in range(len(jobs)))
    control, *runs = results
    held = control.verdict is Verdict.HELD
    if held and all(result.fingerprint == failure.fingerprint for result in runs):
        return Reproduction.STILL_BROKEN, results
    if held and all(result.verdict is Verdict.HELD for result in runs):
        return Reproduction.HOLDS_NOW, results
    return Reproduction.DID_NOT_REPRODUCE, results
