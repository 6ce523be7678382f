"""Crash points: named places in a worker where a supervisor may strike.

A worker calls ``crash_point("outbox.send.after", command=command_id)`` where a crash would matter.
Disarmed, as in production, that is a function call and one comparison. Armed, each call is written
to a trace first; if the supervisor has ordered a stop at that hit, the process then stops itself
with SIGSTOP and does nothing more until the supervisor decides: kill it, copy its files, hold it
while a second instance runs, or let it go on.

**Labels** match ``noun.step.(before|after|mid)``: two lower-case words and the side of the
step on which the point stands. A label is declared once, where it stands, as a literal.

**Context** (keyword arguments, shown as text) selects and scopes: ``ack.send.before[command=c2]#1``
is the first hit *of that command*, so that concurrent work does not move ordinals.

**Arming** needs the switch ``CRASH_HARNESS_ARM=1`` in the environment; without it `arm` refuses.
A program that the harness starts with ``exec`` finds its orders in ``CRASH_HARNESS_ORDERS``, the
path of a file; the environment is read once, when this module is imported. Without the switch,
that variable is not looked at.

This module uses the standard library alone and imports little at start.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Hook = Callable[[str, dict[str, object]], None]

SWITCH = "CRASH_HARNESS_ARM"
"""Environment variable that must be ``1`` before any point can be armed."""

ORDERS = "CRASH_HARNESS_ORDERS"
"""Environment variable with the path of the orders file, for programs started with ``exec``."""

SIDES = ("before", "after", "mid")

_hook: Hook | None = None


class ArmingRefusedError(RuntimeError):
    """Points were to be armed in a process that was not told to allow it."""


def crash_point(label: str, **context: object) -> None:
    """Mark a place where a crash would matter.

    Args:
        label: ``noun.step.(before|after|mid)``, a literal, unique in the program.
        **context: What the hit is about, for example ``command="c2"``; compared as text.
    """
    if _hook is not None:
        _hook(label, context)


def well_formed(label: str) -> bool:
    """Tell whether a label matches ``noun.step.(before|after|mid)``."""
    *words, side = label.split(".")
    return (
        len(words) == 2  # noqa: PLR2004 - a noun and a step
        and side in SIDES
        and all(w.isascii() and w.replace("_", "").isalnum() and w.islower() for w in words)
    )


def is_armed() -> bool:
    """Tell whether this process is armed."""
    return _hook is not None


def arm(hook: Hook) -> None:
    """Arm every point of this process.

    Args:
        hook: Called with the label and the context of each hit, in the thread that hits it;
            `harness.points.armed.Armed.hit` is the one that obeys a supervisor.

    Raises:
        ArmingRefusedError: ``CRASH_HARNESS_ARM`` is not ``1``, or the process is armed already.
    """
    global _hook  # noqa: PLW0603 - one process, one arming
    if os.environ.get(SWITCH) != "1":
        raise ArmingRefusedError(
            f"crash points stay disarmed: set {SWITCH}=1 in the environment of a test process"
        )
    if _hook is not None:
        raise ArmingRefusedError("crash points are armed already in this process")
    _hook = hook


if ORDERS in os.environ and os.environ.get(SWITCH) == "1":
    from harness.points.armed import Armed  # never loaded while disarmed

    arm(Armed.from_file(os.environ[ORDERS]).hit)
