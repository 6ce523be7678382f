"""What became of a child that is a process of the harness itself, in words.

Such a process ends or stands still before its time only if a worker or somebody outside saw to it.
"""

from __future__ import annotations

import os

from harness.model.trace import Death, signal_name

LOOK_S = 1.0
"""How often to look whether a process that is waited for stands still, in seconds."""


def stopped(pid: int) -> str:
    """Say by which signal a child was stopped that stands still; nothing if it does not.

    Nothing is taken away from whoever waits for the child (waitid(2), WNOWAIT).

    Args:
        pid: A child of this process.
    """
    try:
        found = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # it has ended, and was waited for
        return ""
    return "" if found is None else f"was stopped by {signal_name(found.si_status)}"


def ended(code: int | None) -> str:
    """Say how a child ended.

    Args:
        code: Its exit code, or the negative number of the signal that killed it, as `subprocess`
            and `multiprocess` have it; None if it has not ended.
    """
    if code is None:
        return "closed its connection and lives on"
    if code < 0:
        return f"was {Death(-code, -1)}"
    return str(Death(0, code))
