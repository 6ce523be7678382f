"""Run a recorded failure again, and say whether it is still there."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from harness.experiment.confirmation import same
from harness.experiment.lane import Job
from harness.experiment.sharing import Sharing
from harness.images.run_folder import FailureFolder
from harness.model.errors import UsageError
from harness.model.regular_file import shown_path
from harness.model.result import Verdict
from harness.model.schedule import CONTROL, Schedule, parse
from harness.record.failure_schema import read_failure_record
from harness.record.half_done import half_done
from harness.record.outcome import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.explore.executor import Executor
    from harness.model.result import ExperimentResult
    from harness.record.failure_schema import FailureRecord
    from harness.scenario import Scenario


class Reproduction(StrEnum):
    """What came of running a failure again."""

    STILL_BROKEN = "still broken"
    HOLDS_NOW = "holds now"
    FLAKY = "flaky"
    DID_NOT_REPRODUCE = "did not reproduce"

    @property
    def exit_code(self) -> ExitCode:
        """What the command returns for it."""
        return {
            Reproduction.STILL_BROKEN: ExitCode.BROKEN,
            Reproduction.HOLDS_NOW: ExitCode.AS_PINNED,
            Reproduction.FLAKY: ExitCode.INCONCLUSIVE,
            Reproduction.DID_NOT_REPRODUCE: ExitCode.INCONCLUSIVE,
        }[self]


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure to run again.

    Attributes:
        fingerprint: Its identity, or empty when it comes from a schedule and not from a record.
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
    """Read a recorded failure; that of a run that is not over is in the journal of the run.

    Args:
        path: A failure's folder, or the ``failure.json`` in it.

    Raises:
        UsageError: There is none, or it is of another version.
    """
    if path.is_dir() and not FailureFolder(path).record.exists():
        journalled = _in_journal(path)
        if journalled is not None:
            return journalled
    record = read_failure_record(path)
    return Failure(
        record["fingerprint"],
        scenarios_of(record),
        record["scenario"],
        parse(record["schedule"]),
        record["seed"],
    )


def _in_journal(folder: Path) -> Failure | None:
    run = half_done(folder)
    if run is None or (command := run.content.header["command"]) is None:
        return None
    fingerprint = folder.resolve().name
    return next(
        (
            Failure(
                fingerprint,
                command["scenarios_from"],
                result.scenario,
                result.schedule,
                result.seed,
            )
            for result in run.broken
            if result.fingerprint == fingerprint
        ),
        None,
    )


def scenarios_of(record: FailureRecord) -> str:
    """Return where the scenario of a failure was loaded from, on this machine."""
    try:
        return str(Path(record["scenarios_from"]).expanduser())
    except RuntimeError:  # of a user that this machine does not have
        return record["scenarios_from"]


_EXPERIMENT = re.compile(r"(?P<scenario>[a-z0-9._-]+)\[(?P<schedule>.*)\]", re.DOTALL)


def named_failure(what: str, scenarios_from: str, seed: int) -> Failure:
    """Read what is to be run again: the folder of a failure, or an experiment as reports name it.

    Args:
        what: A path, or ``scenario[schedule]``.
        scenarios_from: For an experiment: where its scenario is loaded from.
        seed: For an experiment: the seed.

    Raises:
        UsageError: It is neither, or the record is of another version.
    """
    if os.path.lexists(what):
        return read_failure(Path(what))
    match = _EXPERIMENT.fullmatch(what)
    if match is None:
        raise UsageError(
            f"no recorded failure at {shown_path(what)}, and it is not an experiment such as "
            "'orders[order.charge.after#1=kill]'"
        )
    schedule = "" if match["schedule"] == "control" else match["schedule"]
    return Failure("", scenarios_from, match["scenario"], parse(schedule), seed)


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
        *Still broken* if every run has the recorded fingerprint, or without a record all have one,
        *holds now* if every run held, *flaky* if the runs came out differently, *did not reproduce*
        for anything else; and the results, the control leg first.
    """
    executor.prepare([scenario])
    # From the start each time: a failure is shown by what happens, not by what is known.
    again = Job(
        scenario.name, failure.schedule, failure.seed, sharing=Sharing.NOTHING, confirm=False
    )
    jobs = [Job(scenario.name, CONTROL, failure.seed), *[again] * times]
    by_index = dict(executor.run(jobs))
    results = tuple(by_index[index] for index in range(len(jobs)))
    control, *runs = results
    held = control.verdict is Verdict.HELD
    wanted = failure.fingerprint or runs[0].fingerprint
    if held and wanted and all(result.fingerprint == wanted for result in runs):
        return Reproduction.STILL_BROKEN, results
    if held and all(result.verdict is Verdict.HELD for result in runs):
        return Reproduction.HOLDS_NOW, results
    if held and not all(same(runs[0], other) for other in runs):
        return Reproduction.FLAKY, results
    return Reproduction.DID_NOT_REPRODUCE, results


def different(runs: Iterable[ExperimentResult]) -> tuple[ExperimentResult, ...]:
    """Return the first of the results of each kind.

    Args:
        runs: The results of one schedule.
    """
    found: list[ExperimentResult] = []
    for run in runs:
        if not any(same(run, known) for known in found):
            found.append(run)
    return tuple(found)
