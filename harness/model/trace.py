"""The trace of an incarnation: the points that it reached, and how it died."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.model.schedule import Moment


@dataclass(frozen=True, slots=True)
class Hit:
    """A crash point that an incarnation reached.

    Attributes:
        label: Label of the point.
        context: Its context, as text.
        hits: How often it was reached so far: in all under ``""``, and with each context key.
        stop: Whether the incarnation stopped itself there.
        child: Whether a forked child reached it, and not the worker's own process.
        thread: Whether another thread than the main one reached it.
        pid: Pid of that child, or 0; it differs from run to run, and so makes no difference.
    """

    label: str
    context: dict[str, str]
    hits: dict[str, int]
    stop: bool
    child: bool = False
    thread: bool = False
    pid: int = field(default=0, compare=False)

    def is_at(self, moment: Moment) -> bool:
        """Tell whether this hit is the given moment."""
        return (
            self.label == moment.label
            and (not moment.key or self.context.get(moment.key) == moment.value)
            and self.hits[moment.key] == moment.ordinal
        )


@dataclass(frozen=True, slots=True)
class Death:
    """How an incarnation ended, from its wait status.

    Attributes:
        signal: Number of the signal that killed it, or 0.
        exit_code: Its exit code, or -1 when a signal killed it.
        foreign: Whether the signal was not the harness's.
    """

    signal: int
    exit_code: int
    foreign: bool = field(default=False, compare=False)

    @property
    def killed(self) -> bool:
        """Whether the harness killed it: the kernel says that SIGKILL ended it, not the worker."""
        return self.signal == signal.SIGKILL and not self.foreign

    @property
    def clean(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.signal == 0 and self.exit_code == 0

    def __str__(self) -> str:
        if self.signal:
            return f"killed by {signal_name(self.signal)}"
        return f"exited with code {self.exit_code}"


def signal_name(number: int) -> str:
    """Return the name of a signal.

    Args:
        number: Its number.
    """
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal has no name of its own (signal(7))
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"
