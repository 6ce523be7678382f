"""The record of a run, ``results.json``, as a shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypedDict

from harness.images.run_folder import RESULTS
from harness.model.errors import UsageError
from harness.model.regular_file import shown_path
from harness.model.result import Verdict
from harness.record.read_json import read_versioned

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA: Final = "crash-harness/results/5"


_TOTALS = (
    "scenarios",
    "as_pinned",
    "experiments",
    *(verdict.value for verdict in Verdict),
    "moments_found",
    "moments_struck",
    "moments_survived",
    "exit_code",
)
"""What is counted of a run."""


class ViolationRow(TypedDict):
    """One fact that breaks a promise."""

    oracle: str
    message: str


class FiredRow(TypedDict):
    """A strike that is proved."""

    moment: str
    incarnation: int


class ExperimentRow(TypedDict):
    """One experiment; `known` says that the pins file has its failure."""

    id: str
    scenario: str
    schedule: str
    seed: int
    verdict: Literal["held", "broken", "not_fired", "wrong_death", "hung", "flaky", "unknown"]
    pin: str
    known: bool
    violations: list[ViolationRow]
    fired: list[FiredRow]
    fingerprint: str
    note: str


class OracleRow(TypedDict):
    """An oracle and its promise."""

    name: str
    promise: str


class ComparisonRow(TypedDict):
    """The verdicts of an experiment in forks and with an interpreter per incarnation.

    `oracles` are those that broke with an interpreter per incarnation.
    """

    schedule: str
    forked: str
    fresh: str
    oracles: list[str]
    agrees: bool


class ForkSampleRow(TypedDict):
    """What was run with an interpreter per incarnation too, or why nothing was."""

    experiments: list[ComparisonRow]
    why_not: str


class ScenarioRow(TypedDict):
    """A scenario against its pin; it is not finished when the run was interrupted before.

    `outside` is what its worker left outside of its workspace, where other experiments see it.
    """

    name: str
    pin: str
    finished: bool
    as_pinned: bool
    mismatch: str
    inconclusive: list[str]
    bounds: list[str]
    fork_sample: ForkSampleRow
    outside: list[str]
    oracles: list[OracleRow]


class MomentRow(TypedDict):
    """What became of a moment; `source` is ``file:line`` or empty."""

    scenario: str
    moment: str
    source: str
    reached: bool
    struck: int
    struck_in_recovery: int
    survived: bool


class PinRow(TypedDict):
    """A pin of the pins file, and what the run says of it."""

    scenario: str
    schedule: str
    fingerprint: str
    reason: str
    date: str
    state: Literal["broken", "fixed", "not_run"]


class SlowRow(TypedDict):
    """How long an experiment took, in seconds."""

    id: str
    seconds: float


class TimingRow(TypedDict):
    """Everything that differs between two equal runs.

    `each` is how long every experiment took, in seconds and in the order of `experiments`.
    """

    started: str
    seconds: float
    experiments_per_s: float
    lanes: int
    previous: str
    slowest: list[SlowRow]
    each: list[float]


class RunRecord(TypedDict):
    """What a run came to; `interrupted` says by what, or is empty."""

    schema: Literal["crash-harness/results/5"]
    tier: str
    seed: int
    interrupted: str
    scenarios: list[ScenarioRow]
    experiments: list[ExperimentRow]
    moments: list[MomentRow]
    pins: list[PinRow]
    totals: dict[str, int]
    timing: TimingRow


def read_run(directory: Path) -> RunRecord:
    """Read the record of a run.

    Args:
        directory: The run's directory.

    Raises:
        UsageError: There is none, it is of another version, or a count is missing.
    """
    file = directory / RESULTS
    record = read_versioned(file, RunRecord, SCHEMA, "record of a run")
    for name in _TOTALS:
        if name not in record["totals"]:
            raise UsageError(f"{shown_path(file)}: the count {name!r} is missing - at `$.totals`")
    return record
