r"""Schedules: the faults of an experiment, per incarnation, as values and as text.

The text form is the one users type and read::

    ack.send.before#1=kill / recovery.scan.before#1=kill

``/`` starts the next incarnation, ``,`` joins the faults of one. A moment is a label, optionally a
context ``[key=value]``, optionally ``#n`` (default 1): the n-th hit of the label with that context
in one incarnation. In a value ``\`` escapes ``\`` and ``]``. What `str` prints, `parse` reads back
to the same value; no other module reads or writes this form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.model.errors import UnknownNameError, UsageError
from harness.model.nearest import nearest
from harness.points import SIDES, well_formed

if TYPE_CHECKING:
    from collections.abc import Iterable

FAULTS = ("kill",)
"""Known faults. ``kill``: SIGKILL of the worker's process."""

MAX_ORDINAL = 999_999_999
"""The highest hit that a moment can name."""

_LABEL = re.compile(r"[^\s\[\]#=,/]+")
"""Whatever may be meant as a label: a misspelt one is answered with the right one."""

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ORDINAL = re.compile(r"[1-9][0-9]{0,8}(?![0-9])")


class MalformedLabelError(UsageError):
    """A label does not have the form of one; the message has the nearest that has.

    Args:
        label: The label as it was given.
        known: The labels that it can be, if they are known.
        place: Where it stands, to begin the message with.
        shown: More lines for the reader.
    """

    def __init__(
        self, label: str, known: Iterable[str] = (), place: str = "", shown: str = ""
    ) -> None:
        self.label = label
        self.known = tuple(sorted(set(known)))
        self.place = place
        self.shown = shown
        near = nearest(label, self.known) or _with_right_side(label)
        hint = f"; did you mean {near!r}?" if near else ""
        super().__init__(
            f"{place}label {label!r} must match noun.step.({'|'.join(SIDES)}){hint}{shown}"
        )

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.label, self.known, self.place, self.shown)


def _with_right_side(label: str) -> str:
    """Return a label whose side alone was misspelt, or nothing."""
    words, _, side = label.rpartition(".")
    right = f"{words}.{nearest(side, SIDES)}"
    return right if well_formed(right) else ""


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a strike can happen: a hit of a crash point.

    Attributes:
        label: Label of the point.
        ordinal: Which hit in one incarnation, from 1.
        key: Context key that scopes the count, or empty for all hits of the label.
        value: Text of the context value.

    Raises:
        MalformedLabelError: The label is not well formed.
        UsageError: The key or the ordinal is not well formed.
    """

    label: str
    ordinal: int = 1
    key: str = ""
    value: str = ""

    def __post_init__(self) -> None:
        if not well_formed(self.label):
            raise MalformedLabelError(self.label)
        if not 1 <= self.ordinal <= MAX_ORDINAL:
            raise UsageError(
                f"hits are counted from 1 to {MAX_ORDINAL}, not {self.ordinal}: {self.label}"
            )
        if self.key and not _KEY.fullmatch(self.key):
            raise UsageError(f"context key {self.key!r} is not a name: {self.label}")
        if self.value and not self.key:
            raise UsageError(f"context value {self.value!r} has no key: {self.label}")

    def __str__(self) -> str:
        value = self.value.replace("\\", r"\\").replace("]", r"\]")
        scope = f"[{self.key}={value}]" if self.key else ""
        return f"{self.label}{scope}#{self.ordinal}"


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault at a moment.

    Attributes:
        moment: Where.
        fault: What happens there, one of `FAULTS`.

    Raises:
        UnknownNameError: The fault is not known.
    """

    moment: Moment
    fault: str = "kill"

    def __post_init__(self) -> None:
        if self.fault not in FAULTS:
            raise UnknownNameError("fault", self.fault, FAULTS)

    def __str__(self) -> str:
        return f"{self.moment}={self.fault}"


@dataclass(frozen=True, slots=True)
class Schedule:
    """The strikes of an experiment.

    Attributes:
        incarnations: The strikes of each incarnation, in order; an empty schedule is the control
        leg.

    Raises:
        UsageError: An incarnation has no strike, so that the text could not show it.
    """

    incarnations: tuple[tuple[Strike, ...], ...] = ()

    def __post_init__(self) -> None:
        if not all(self.incarnations):
            raise UsageError("an incarnation without a strike cannot be part of a schedule")

    def __str__(self) -> str:
        return " / ".join(", ".join(map(str, strikes)) for strikes in self.incarnations)

    def then(self, moment: Moment, fault: str = "kill") -> Schedule:
        """Return this schedule with one more incarnation, struck at a moment."""
        return Schedule((*self.incarnations, (Strike(moment, fault),)))

    def first(self, incarnations: int) -> Schedule:
        """Return the strikes of the first incarnations alone."""
        return Schedule(self.incarnations[:incarnations])

    @property
    def moments(self) -> tuple[Moment, ...]:
        """Every moment, in order."""
        return tuple(strike.moment for strikes in self.incarnations for strike in strikes)


CONTROL = Schedule()
"""The schedule without a strike: the control leg of every scenario."""


def parse(text: str, labels: Iterable[str] = ()) -> Schedule:
    """Read the text form.

    Args:
        text: For example ``ack.send.before[command=c2]#1=kill / recovery.scan.before=kill``; empty
            or blank is the control leg.
        labels: Known labels, to suggest the nearest of them for one that is not well formed; read
            only then.

    Raises:
        UsageError: The text is not a schedule; the message shows the place.
        UnknownNameError: A fault is not known.
    """
    if not text.strip():
        return CONTROL
    return _Reader(text, labels).schedule()


class _Reader:
    def __init__(self, text: str, labels: Iterable[str]) -> None:
        self._text = text
        self._labels = labels
        self._at = 0

    def schedule(self) -> Schedule:
        incarnations = [self._incarnation()]
        while self._took("/"):
            incarnations.append(self._incarnation())
        if self._at < len(self._text):
            raise self._wrong("'/' , ',' or the end")
        return Schedule(tuple(incarnations))

    def _incarnation(self) -> tuple[Strike, ...]:
        strikes = [self._strike()]
        while self._took(","):
            strikes.append(self._strike())
        return tuple(strikes)

    def _strike(self) -> Strike:
        label = self._label()
        key = value = ""
        if self._took("["):
            key = self._word(_KEY, "a context key")
            if not self._took("="):
                raise self._wrong("'=' and a context value")
            value = self._value()
        ordinal = int(self._word(_ORDINAL, "a hit number from 1")) if self._took("#") else 1
        if not self._took("="):
            raise self._wrong("'=' and a fault")
        fault = self._word(_KEY, "a fault such as kill")
        return Strike(Moment(label, ordinal, key, value), fault)

    def _label(self) -> str:
        label = self._word(_LABEL, "a label such as ack.send.before")
        if not well_formed(label):
            column = self._at - len(label)
            raise MalformedLabelError(
                label, self._labels, f"schedule, column {column + 1}: ", self._pointer(column)
            )
        return label

    def _value(self) -> str:
        taken: list[str] = []
        while self._at < len(self._text):
            char = self._text[self._at]
            self._at += 1
            if char == "]":
                return "".join(taken)
            if char == "\\":
                if self._text[self._at : self._at + 1] not in ("\\", "]"):
                    raise self._wrong(r"'\' or ']' after '\'")
                char = self._text[self._at]
                self._at += 1
            taken.append(char)
        raise self._wrong("']'")

    def _word(self, pattern: re.Pattern[str], wanted: str) -> str:
        self._skip_blanks()
        match = pattern.match(self._text, self._at)
        if not match:
            raise self._wrong(wanted)
        self._at = match.end()
        return match.group()

    def _took(self, char: str) -> bool:
        self._skip_blanks()
        if self._text.startswith(char, self._at):
            self._at += 1
            return True
        return False

    def _skip_blanks(self) -> None:
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1

    def _wrong(self, wanted: str) -> UsageError:
        place = f"schedule, column {self._at + 1}"
        return UsageError(f"{place}: expected {wanted}{self._pointer(self._at)}")

    def _pointer(self, column: int) -> str:
        return f"\n  {self._text}\n  {' ' * column}^"
