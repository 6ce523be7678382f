"""What can go wrong with a snapshot, one class per answer.

The first three have the names and texts of the Go package. No class is a subclass of
another and there is no public base class, so that no ``except`` can take one of them for another:
reading a failed load as "never ran" would replay every side effect (ERR-04, ERR-05).
"""

from __future__ import annotations

from typing import ClassVar


class _Sentinel(Exception):  # noqa: N818 - private root of the three names below
    """An error with a fixed text, followed by the detail of one occurrence if there is one."""

    text: ClassVar[str]

    def __init__(self, detail: str = "") -> None:
        # The detail alone goes into `args`, so that the error survives pickling unchanged.
        super().__init__(detail)

    def __str__(self) -> str:
        detail = super().__str__()
        return f"{self.text}: {detail}" if detail else self.text


class NotFound(_Sentinel):
    """There is no snapshot of this run: the normal answer on a first run (ERR-01).

    Args:
        detail: Which run was asked for.
    """

    text = "编排进度快照不存在"


class StaleSeq(_Sentinel):
    """The number is not higher than the one already accepted or stored (ERR-02).

    From a store it says that an equal or newer snapshot has landed. From a gate it says only that
    an equal or newer one was accepted, which may still fail (GAT-29). Either way the caller loads
    again, compares, and commits its finished step on top if it is missing (AMB-18).

    Args:
        detail: Run, number offered, number found.
    """

    text = "编排进度快照序号回退"


class StoreMissing(_Sentinel):
    """A snapshot was to be committed and there is no store: never a silent success (ERR-03).

    Args:
        detail: What was to be done.
    """

    text = "未装配存储,无法提交进度快照"


class InvalidSnapshotError(ValueError):
    """A snapshot was built or offered with a value that cannot be kept (SNP-06, SNP-17)."""


class DamagedRecordError(Exception):
    """A store holds or returned something that is not the snapshot asked for (STO-05, STO-22).

    It is neither `NotFound` nor an empty snapshot: what the run has done is unknown, so the host
    must not go on.
    """


class ConflictingSnapshotError(Exception):
    """Another snapshot of the same run and number is stored already; it was kept (STO-03)."""
