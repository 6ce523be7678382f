"""Sentences about a worker that does not become quiet as its scenario says."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.model.trace import Death


def describe_end(death: Death | None, quiet_at: str) -> str:
    """Say how a worker ended that was not to end yet, and what to do when it ended well.

    Args:
        death: How it ended, or None if it did not.
        quiet_at: `Scenario.quiet_at`.
    """
    if death is not None and death.clean and quiet_at:
        return (
            f"{death}; a worker with quiet_at stays alive at that point ({quiet_at}) when nothing"
            " is left to do, and one that ends by itself has no quiet_at"
        )
    if death is not None and death.signal == signal.SIGKILL and not death.killed:
        return f"{death}, which the harness had not sent"
    return str(death)


def describe_wait(quiet_at: str) -> str:
    """Say what is waited for until a worker is quiet, for the message of a missed deadline.

    Args:
        quiet_at: `Scenario.quiet_at`.
    """
    if quiet_at:
        return f"{quiet_at}, the quiet_at of the scenario"
    return (
        "the worker to end; one that does not end by itself needs quiet_at in its scenario, the"
        " label of a point that it hits when nothing is left to do"
    )
