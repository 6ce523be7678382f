"""The record of a failure, ``failure.json``, as a shape: all that a report of it shows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, Literal, TypedDict

from harness.images.run_folder import FAILURE
from harness.record.read_json import read_versioned
from harness.record.run_schema import ViolationRow  # noqa: TC001 - annotations are read

if TYPE_CHECKING:
    from pathlib import Path

FAILURE_SCHEMA: Final = "crash-harness/failure/4"


class SourceLine(TypedDict):
    """A line of source."""

    number: int
    text: str


class PromiseRow(TypedDict):
    """What an oracle promises, and what usually restores it; empty when the oracle does not say."""

    name: str
    promise: str
    remedy: str


class StrikeRow(TypedDict):
    """A strike that is proved, with the place of its point in the source.

    `passed` are the last points before it in this incarnation, `next_in_control` the one that came
    after it when nothing was struck: those about the same subject, where there are any. If a
    promise broke about another subject than the one that was struck, they are about that, and so is
    the place: that of the point which it did not come to any more.
    """

    moment: str
    incarnation: int
    file: str
    line: int
    lines: list[SourceLine]
    passed: list[str]
    next_in_control: str


class HistoryRow(TypedDict):
    """Something that happened.

    `order` is exact among the rows of one `lane` and between incarnations. What a worker did and
    what the world saw of it within one incarnation have no common clock.
    """

    order: int
    incarnation: int
    lane: Literal["worker", "world"]
    what: Literal["started", "point", "struck", "ended", "fact", "effect"]
    text: str
    context: dict[str, str]
    hits: dict[str, int]
    stopped: bool


class CommandRow(TypedDict):
    """A command: asked, delivered, promised by an acknowledgement, and how it ended."""

    command_id: str
    body: str
    fresh: bool
    delivered: int
    acknowledged: int
    accepted_in: int
    reported: list[str]
    ended: str


class EffectRow(TypedDict):
    """A side effect in the ledger, and how often it is there."""

    kind: str
    key: str
    times: int
    by: list[str]


class RecordedDecision(TypedDict):
    """A decision of recovery, from the worker's books."""

    incarnation: int
    attempt_id: str
    decision: str
    reason: str


class FileRow(TypedDict):
    """A file of a crash image; `change` is against the state before."""

    path: str
    size_bytes: int
    checksum: str
    change: Literal["same", "added", "changed", "removed"]


class TableRow(TypedDict):
    """A row of a table; `before` has the old cells of a changed one."""

    change: Literal["same", "added", "changed", "removed"]
    cells: list[str]
    before: list[str]


class TableState(TypedDict):
    """A table against the state before; rows that are left out are counted."""

    database: str
    table: str
    columns: list[str]
    rows: list[TableRow]
    total: int
    left_out: int
    note: str


class StateRow(TypedDict):
    """What was durable when an incarnation had ended."""

    incarnation: int
    title: str
    files: list[FileRow]
    files_left_out: int
    tables: list[TableState]


class ControlPoint(TypedDict):
    """How often a point was reached until the worker was quiet, here and in the control leg."""

    label: str
    here: int
    control: int


class ControlRow(TypedDict):
    """The control leg: its first incarnation, until the worker was quiet.

    `state` is what was durable then, against this experiment after its recovery: *added* is what
    the control leg alone has, *removed* what it does not have. It is None where nothing was kept.
    """

    verdict: str
    note: str
    points: list[ControlPoint]
    history: list[HistoryRow]
    history_left_out: int
    state: StateRow | None


class ShrinkStep(TypedDict):
    """A shorter schedule that was tried."""

    schedule: str
    verdict: str
    taken: bool


class MinimalRow(TypedDict):
    """The shortest schedule that breaks a promise of those that were tried."""

    schedule: str
    how: str
    steps: list[ShrinkStep]


class IncarnationRow(TypedDict):
    """An incarnation: how it ended, and the end of what it wrote."""

    number: int
    death: str
    output: str


class WorkloadRow(TypedDict):
    """What was asked of the worker beside its commands: doubled deliveries and lost replies."""

    twice: list[str]
    lost: list[str]


class EnvironmentRow(TypedDict):
    """Where it happened."""

    python: str
    platform: str
    packages: dict[str, str]
    variables: dict[str, str]


class FailureRecord(TypedDict):
    """A broken experiment."""

    schema: Literal["crash-harness/failure/4"]
    fingerprint: str
    scenarios_from: str
    scenario: str
    schedule: str
    seed: int
    pin: str
    violations: list[ViolationRow]
    promises: list[PromiseRow]
    strikes: list[StrikeRow]
    incarnations: list[IncarnationRow]
    history: list[HistoryRow]
    history_left_out: int
    workload: WorkloadRow
    commands: list[CommandRow]
    effects: list[EffectRow]
    decisions: list[RecordedDecision]
    states: list[StateRow]
    survivors: list[str]
    control: ControlRow
    minimal: MinimalRow
    environment: EnvironmentRow


def read_failure_record(path: Path) -> FailureRecord:
    """Read the record of a failure.

    Args:
        path: A failure's folder, or the ``failure.json`` in it.

    Raises:
        UsageError: There is none, or it is of another version.
    """
    file = path / FAILURE if os.path.isdir(path) else path  # noqa: PTH112 - false where it errs
    return read_versioned(file, FailureRecord, FAILURE_SCHEMA, "recorded failure")
