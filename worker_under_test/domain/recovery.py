"""What a restart does with an attempt it finds: a decision of the capability's policy (REC-02)."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker_under_test.domain.attempt import AttemptState
from worker_under_test.domain.event import EventKind

if TYPE_CHECKING:
    from collections.abc import Callable


class RecoveryPolicy(enum.StrEnum):
    """How a capability's interrupted attempts are continued."""

    RECOMPUTE = "recompute"
    """Pure: the same input gives the same output (REC-03)."""
    RESUME = "resume"
    """What is there is verified by checksum; what is right is kept (REC-04)."""
    PLAN = "plan"
    """A snapshot says which steps are left; each is asked for again under its old key (PLN-30)."""
    QUERY = "query"
    """The outside is asked what became of the request, then it is decided (REC-09)."""
    KEY_OR_UNKNOWN = "key or unknown"
    """The outside cannot be asked: the same key again, or a person decides (REC-12)."""
    FIND_PROCESS = "find the process"
    """A child may have outlived the worker: it is looked for, never started twice (PRC-02)."""


class Decision(enum.StrEnum):
    """What is done with an unfinished attempt."""

    START = "start"
    CANCEL = "cancel"
    RECOMPUTE = "recompute"
    RESUME = "resume"
    QUERY = "query"
    REPEAT = "repeat"
    """Do it again under the key of the first time; the outside does it once."""
    FIND_PROCESS = "find_process"
    UNKNOWN = "unknown"


_NOTHING_OUTSIDE = frozenset({RecoveryPolicy.RECOMPUTE, RecoveryPolicy.RESUME})
"""Policies of work whose traces are all the worker's own: such work can be called cancelled."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a capability says of an interrupted attempt, from its evidence alone.

    Attributes:
        decision: What is to be done.
        reason: Why, in a few words: how it explains the window between record and outside.
    """

    decision: Decision
    reason: str


@dataclass(frozen=True, slots=True)
class RecoveryDecision:
    """A decision as it is saved, before anything is done about it.

    Attributes:
        boot: Number of the start that decided.
        attempt_id: The attempt.
        command_id: Its command.
        found_state: The state in which it was found.
        found_checkpoint_seq: Number of its last checkpoint, or None.
        decision: What is to be done.
        reason: Why, in a few words.
    """

    boot: int
    attempt_id: str
    command_id: str
    found_state: AttemptState
    found_checkpoint_seq: int | None
    decision: Decision
    reason: str


def end_of_cancel(policy: RecoveryPolicy | None) -> EventKind:
    """Say how a cancelled attempt ends that had begun (ADM-10).

    Args:
        policy: Recovery policy of its capability.

    Returns:
        ``cancelled`` only where nothing outside can have happened; else ``unknown``: a cancel does
        not prove that an effect did not happen.
    """
    return EventKind.CANCELLED if policy in _NOTHING_OUTSIDE else EventKind.UNKNOWN


def decide(
    state: AttemptState,
    policy: RecoveryPolicy | None,
    propose: Callable[[], Proposal],
    *,
    cancelled: bool = False,
) -> Proposal:
    """Choose what is done with an attempt that a restart found.

    The runtime decides what is the same for all work; the rest is the capability's (REC-02).

    Args:
        state: Its saved state; an unfinished one.
        policy: Recovery policy of its capability, or None if capability or version is not
            installed.
        propose: Asks the capability; called only for an attempt that had begun.
        cancelled: A cancel of its command is saved (ADM-08).

    Returns:
        The decision and the reason.
    """
    if cancelled and (state is AttemptState.PENDING or policy in _NOTHING_OUTSIDE):
        return Proposal(Decision.CANCEL, "a cancel is saved")
    if state is AttemptState.PENDING:
        # It never began, so there is nothing to look for, whatever the capability (REC-14).
        return Proposal(Decision.START, "accepted and never started")
    if policy is None:
        return Proposal(Decision.UNKNOWN, "its capability and version are not installed")
    return propose()
