"""The worker's durable state in neutral terms, so that oracles know no schema.

A scenario whose worker has an inbox, attempts and an outbox gives its oracles a *reader*: a
function from the worker's directory to `WorkerState`. The oracles compare the books of several
images with each other and with the coordinator's facts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "UNKNOWN"})
"""States in which an attempt is over for the worker; UNKNOWN waits for a person."""


@dataclass(frozen=True, slots=True)
class InboxRow:
    """A command that the worker holds.

    Attributes:
        command_id: Its id.
        digest: Digest of its content.
    """

    command_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """The one attempt of a command.

    Attributes:
        attempt_id: Its id.
        command_id: Its command.
        capability: What runs, as ``name/version``.
        state: One of PENDING, RUNNING, RECOVERING and `ENDED`.
        has_result: Whether a result is saved.
        cancelled: Whether a cancel of its command is saved.
        evidence: What its last checkpoint holds to be found again, as JSON; empty without one.
    """

    attempt_id: str
    command_id: str
    capability: str
    state: str
    has_result: bool
    cancelled: bool = False
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """An event that the worker has to report.

    Attributes:
        event_id: Its id, for ever.
        attempt_id: Its attempt.
        command_id: Its command.
        kind: What it says.
        digest: Digest of its content.
        reported: Whether it is marked as reported.
    """

    event_id: str
    attempt_id: str
    command_id: str
    kind: str
    digest: str
    reported: bool


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """The place where an attempt can go on.

    Attributes:
        attempt_id: Its attempt.
        seq: Its sequence number; higher is later.
    """

    attempt_id: str
    seq: int


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """What recovery decided about an attempt, and why.

    Attributes:
        boot: Number of the worker's start that decided, from 1.
        attempt_id: The attempt.
        decision: What it decided.
        reason: Why.
    """

    boot: int
    attempt_id: str
    decision: str
    reason: str


@dataclass(frozen=True, slots=True)
class ArtifactRow:
    """A file that the worker says it made.

    Attributes:
        path: Path below the directory of artifacts.
        attempt_id: The attempt that made it.
        sha256: Its checksum, in hexadecimal.
    """

    path: str
    attempt_id: str
    sha256: str


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """How far a run of steps has come.

    Attributes:
        run_id: The run.
        seq: Its sequence number; higher is later.
        status: What the run says of itself.
        done: Ids of the steps that are recorded as finished.
    """

    run_id: str
    seq: int
    status: str
    done: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step of a graph.

    Attributes:
        step_id: Its id.
        depends_on: The steps that it names; empty means that its position decides.
        isolated: Whether it waits for nothing, not even by its position.
    """

    step_id: str
    depends_on: tuple[str, ...] = ()
    isolated: bool = False


@dataclass(frozen=True, slots=True)
class GraphRow:
    """What a run is asked to do.

    Attributes:
        run_id: The run.
        steps: Its steps in order.
    """

    run_id: str
    steps: tuple[StepRow, ...]


@dataclass(frozen=True, slots=True)
class WorkerState:
    """Everything that the worker has written down.

    Attributes:
        boot: Number of its last start, 0 before the first.
        inbox: In the order of reception.
        attempts: In the order of acceptance.
        outbox: In the order of saving.
        checkpoints: The latest of each attempt.
        decisions: In the order of deciding.
        artifacts: In the order of their paths.
        snapshots: The latest of each run, in the order of their runs.
    """

    boot: int = 0
    inbox: tuple[InboxRow, ...] = ()
    attempts: tuple[AttemptRow, ...] = ()
    outbox: tuple[OutboxRow, ...] = ()
    checkpoints: tuple[CheckpointRow, ...] = ()
    decisions: tuple[DecisionRow, ...] = ()
    artifacts: tuple[ArtifactRow, ...] = ()
    snapshots: tuple[SnapshotRow, ...] = ()


StateReader: TypeAlias = Callable[[Path], WorkerState]
"""Reads the books from a worker's directory; an empty directory gives empty books."""
