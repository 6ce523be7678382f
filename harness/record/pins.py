"""The pins file: failures that are known, so that a harness can be adopted before all are fixed.

::

    [[pin]]
    scenario = "orders"
    schedule = "order.charge.after#1=kill"
    reason = "the provider's idempotency keys come with version 3"
    date = 2026-11-30

A pin names a failure by scenario and schedule, by its fingerprint, or by both. A failure that is
not pinned fails the run; a pinned one that is gone asks to be unpinned, and fails it too. It is
gone when its experiment held, or broke in another way than the pin says.
"""

from __future__ import annotations

import datetime as dt
import os
import tomllib
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, TypeAlias

from harness.model.errors import UnknownNameError, UsageError
from harness.model.regular_file import read_regular_file
from harness.model.result import Verdict
from harness.model.schedule import parse
from harness.record.typed_dicts import as_declared

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from harness.model.result import ExperimentResult
    from harness.moments.catalogue import Catalogue

FILE_NAME = "crash-harness.pins.toml"

_PROMISES = 4
"""How many promises at once a failure may break that is known by its fingerprint alone."""

Table: TypeAlias = dict[str, object]


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """A pin: a failure that is known.

    Attributes:
        reason: Why it is left for now.
        date: When it was pinned.
        scenario: Name of the scenario, or empty for a pin by fingerprint alone.
        schedule: Text of the schedule, as it is printed.
        fingerprint: Identity of the failure, or empty for any failure of this schedule.
    """

    reason: str
    date: dt.date
    scenario: str = ""
    schedule: str = ""
    fingerprint: str = ""

    def __str__(self) -> str:
        if not self.scenario:
            return self.fingerprint
        return f"{self.scenario}[{self.schedule or 'control'}]"

    def names(self, result: ExperimentResult) -> bool:
        """Tell whether it names this experiment; one by fingerprint alone names what is broken."""
        if not self.scenario:
            return result.fingerprint == self.fingerprint
        return self.scenario == result.scenario and self.schedule == str(result.schedule)

    def knows(self, result: ExperimentResult) -> bool:
        """Tell whether it is the pin of this failure."""
        broken = result.verdict is Verdict.BROKEN
        right = self.fingerprint in ("", result.fingerprint)
        return broken and right and self.names(result)


@dataclass(frozen=True, slots=True)
class Pins:
    """The pins of a file.

    Attributes:
        known: The pins, in the order of the file.
    """

    known: tuple[KnownFailure, ...] = ()

    def check(self, catalogues: Mapping[str, Catalogue]) -> None:
        """See that the points that pins name are declared, or a pin could never match anything.

        Args:
            catalogues: The declared points of scenarios by their names. Pins of other scenarios are
                not looked at: one file may be for several folders of scenarios.

        Raises:
            UsageError: A point is not declared; the message has the nearest label.
        """
        for pin in self.known:
            catalogue = catalogues.get(pin.scenario)
            if catalogue:
                try:
                    catalogue.check(parse(pin.schedule))
                except UnknownNameError as error:
                    raise UsageError(f"the pin of {pin}: {error}") from None

    def know(self, result: ExperimentResult) -> bool:
        """Tell whether a failure is pinned."""
        return any(pin.knows(result) for pin in self.known)

    def fixed(
        self, results: Iterable[ExperimentResult], oracles: Iterable[str]
    ) -> tuple[KnownFailure, ...]:
        """Return the pins whose failure is gone, though its experiment was run.

        A pin by fingerprint alone does not say which experiment that is; it is the one that could
        have this fingerprint if it broke up to four of its promises.

        Args:
            results: The experiments of a scenario.
            oracles: Names of its oracles.
        """
        judged = [r for r in results if r.verdict in (Verdict.HELD, Verdict.BROKEN)]
        here = [pin for pin in self.known if not any(pin.knows(result) for result in judged)]
        nameless = {pin.fingerprint for pin in here if not pin.scenario}
        names = tuple(oracles)
        gone = {
            mark
            for result in judged
            if nameless
            for mark in result.could_break(names, _PROMISES)
            if mark in nameless
        }
        return tuple(
            pin
            for pin in here
            if (pin.fingerprint in gone and not pin.scenario)
            or any(pin.scenario and pin.names(result) for result in judged)
        )


NO_PINS = Pins()


def read_pins(path: Path) -> Pins:
    """Read a pins file.

    Args:
        path: The file.

    Raises:
        UsageError: It cannot be read, is not TOML, or a pin is not well formed.
        UnknownNameError: A key is not known.
    """
    source = read_regular_file(path, "pins file")
    try:
        data = tomllib.loads(source.decode())
    except RecursionError as error:
        raise UsageError(f"{path} is not TOML that can be read: nested too deeply") from error
    except ValueError as error:  # a TOMLDecodeError, or of a number or a date that is none
        raise UsageError(f"{path} is not TOML: {error}") from error
    for key in data:
        if key != "pin":
            raise UnknownNameError("table of a pins file", key, ("pin",))
    tables = data.get("pin", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"{path}: pins are written as [[pin]]")
    return Pins(tuple(_pin(table, f"{path}: pin {n}") for n, table in enumerate(tables, start=1)))


def pins_in(folder: Path) -> Pins:
    """Read the pins file of a folder; without one there are no pins."""
    usual = folder / FILE_NAME
    # A link that leads nowhere is meant to be one, too.
    return read_pins(usual) if os.path.lexists(usual) else NO_PINS


def _pin(table: Table, where: str) -> KnownFailure:
    known = [field.name for field in fields(KnownFailure)]
    for key in table:
        if key not in known:
            raise UnknownNameError(f"key of a pin ({where})", key, known)
    if type(table.get("date")) is not dt.date:  # a time of day makes it a subclass
        raise UsageError(f"{where} has no date such as 2026-11-30")
    pin = as_declared(table, KnownFailure, where)
    pin = replace(pin, schedule=_schedule(pin.schedule, where), reason=pin.reason.strip())
    if not pin.reason:
        raise UsageError(f"{where} gives no reason")
    if not pin.fingerprint and not (pin.scenario and "schedule" in table):
        raise UsageError(f"{where} names neither a fingerprint nor a scenario with a schedule")
    if pin.schedule and not pin.scenario:
        raise UsageError(f"{where} has a schedule and no scenario")
    return pin


def _schedule(text: str, where: str) -> str:
    try:
        return str(parse(text))
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
