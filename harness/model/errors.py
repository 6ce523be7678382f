"""Errors that are meant for the reader: what was wrong, where, the nearest right name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.model.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable


_SHOWN_CHARS = 100
_SHOWN = 8
"""How many known names are shown when none is near."""


class HarnessError(Exception):
    """The harness itself failed (exit code 4)."""


class UsageError(HarnessError):
    """The caller asked for something that does not exist or is not well formed (exit code 2)."""


class UnknownNameError(UsageError):
    """A name is not known; the message has the nearest known one, or a few that are known.

    Args:
        kind: What the name should have named, for example ``"scenario"``.
        name: The name as it was given.
        known: Every name that would have been right.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        self.known = choices = tuple(sorted(set(known)))
        if (near := nearest(name, choices)) is not None:
            hint = f"; did you mean {near!r}?"
        elif not choices:
            hint = f"; there is no {kind} at all"
        elif len(choices) <= _SHOWN:
            hint = f"; known: {', '.join(map(repr, choices))}"
        else:
            hint = ""
        shown = name if len(name) <= _SHOWN_CHARS else f"{name[:_SHOWN_CHARS]}…"
        super().__init__(f"unknown {kind} {shown!r}{hint}")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.kind, self.name, self.known)


class ProcessLostError(HarnessError):
    """A process of the harness ended or was stopped, and the harness had not seen to it.

    Args:
        what: Which it was, for example ``"the supervisor"``.
        fate: What became of it, for example ``"was killed by SIGKILL"``.
    """

    def __init__(self, what: str, fate: str) -> None:
        self.what = what
        self.fate = fate
        super().__init__(f"{what} {fate}, and the harness had not seen to it")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.what, self.fate)


class DeadlineError(HarnessError):
    """A wait ended without its event.

    Args:
        what: What was waited for.
        deadline_s: How long, in seconds.
    """

    def __init__(self, what: str, deadline_s: float) -> None:
        self.what = what
        self.deadline_s = deadline_s
        super().__init__(f"waited {deadline_s:g} s in vain for {what}")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.what, self.deadline_s)


class LeaveError(SystemExit):
    """This process was told to end; the user's code that runs in it has not failed."""
