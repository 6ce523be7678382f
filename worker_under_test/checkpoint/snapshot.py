"""The snapshot: how far one run has come."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from worker_under_test.checkpoint.errors import InvalidSnapshotError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_SEQ = 2**63 - 1
"""Highest sequence number: what a signed 64-bit integer, and so SQLite, can hold (SNP-17)."""


class Status(StrEnum):
    """The closed set of orchestration states (SNP-05, SNP-06, AMB-6).

    A plan goes on with every state that is not terminal, an unknown one included; a store refuses
    to save an unknown one. The empty state is the zero value of a host that states none.
    """

    UNSET = ""
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL_STATUSES: frozenset[str] = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})
"""The states of a run that has ended and does not reopen by itself."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Progress of one run at one moment (SNP-01).

    One snapshot is committed per finished step (SNP-14), and each is cumulative: it names every
    trusted step of the earlier ones (SNP-16).

    The value is frozen and keeps copies of what it was given, so it cannot change behind a
    caller's back through a list or dict that the caller still holds.

    Attributes:
        run_id: Identity of the run, assigned by the host: stable, and the same when another
            process derives it again (SNP-02).
        seq: Strictly increasing within a run; 0 means "no snapshot yet" (SNP-03, SNP-04).
        status: A `Status`, or a text that a newer program wrote and this one does not know.
        done: Ids of finished steps, kept as a tuple. Order and repetition carry no meaning
            (SNP-07, SNP-08).
        fields: The host's own facts, kept as a dict and never interpreted (SNP-09).

    Raises:
        InvalidSnapshotError: A value has the wrong type, or ``seq`` is not an integer from 0 to
            `MAX_SEQ`.
    """

    run_id: str
    seq: int
    status: str
    done: Sequence[str] = ()
    fields: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_seq(self.seq)
        if isinstance(self.done, str):
            raise InvalidSnapshotError(f"done must be a sequence of step ids, not {self.done!r}")
        done, fields = tuple(self.done), dict(self.fields)
        for what, texts in (
            ("run_id", (self.run_id,)),
            ("status", (self.status,)),
            ("a step id in done", done),
            ("a key in fields", fields),
            ("a value in fields", fields.values()),
        ):
            for text in texts:
                if not isinstance(text, str):
                    raise InvalidSnapshotError(f"{what} must be a string, not {text!r}")
        object.__setattr__(self, "status", str(self.status))
        object.__setattr__(self, "done", done)
        object.__setattr__(self, "fields", fields)

    @property
    def is_terminal(self) -> bool:
        """Whether the run has ended, the one question that a plan asks of the state (SNP-05)."""
        return self.status in TERMINAL_STATUSES

    def clone(self) -> Snapshot:
        """Return an equal snapshot that shares nothing changeable with this one (SNP-11)."""
        return Snapshot(self.run_id, self.seq, self.status, self.done, self.fields)

    def same_facts(self, other: Snapshot) -> bool:
        """Tell whether two snapshots say the same, whatever the order of ``done``.

        A caller that was told `StaleSeq` recognises its own landed snapshot this way (COM-17).

        Args:
            other: The snapshot to compare with.

        Returns:
            Whether run, number, state, set of finished steps and fields are equal.
        """
        return (
            (self.run_id, self.seq, self.status) == (other.run_id, other.seq, other.status)
            and set(self.done) == set(other.done)
            and self.fields == other.fields
        )


def require_seq(seq: int) -> None:
    """Refuse what is not a sequence number (SNP-17).

    Args:
        seq: The number; 0 is allowed and means "no snapshot yet".

    Raises:
        InvalidSnapshotError: It is not an integer from 0 to `MAX_SEQ`. A bool is not an integer
            here, and nothing is rounded or wrapped.
    """
    if not isinstance(seq, int) or isinstance(seq, bool) or not 0 <= seq <= MAX_SEQ:
        raise InvalidSnapshotError(f"seq must be an integer from 0 to {MAX_SEQ}, not {seq!r}")
