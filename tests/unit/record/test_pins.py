"""The pins file: known failures, with reason and date."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.model.errors import UsageError
from harness.model.result import ExperimentResult, Verdict, Violation
from harness.model.schedule import parse
from harness.moments.catalogue import Catalogue, DeclaredPoint
from harness.record.pins import read_pins

if TYPE_CHECKING:
    from pathlib import Path

AT = "order.charge.after#1=kill"
FOUND = (Violation("no-effect-twice", "twice"),)
BROKEN = ExperimentResult("orders", parse(AT), 0, Verdict.BROKEN, FOUND)
HELD = ExperimentResult("orders", parse(AT), 0, Verdict.HELD)
ORACLES = ("no-effect-twice", "a", "b", "x", "z")
PIN = f'[[pin]]\nscenario = "orders"\nschedule = "{AT}"\nreason = "later"\ndate = 2026-11-30\n'


def pins_file(tmp_path: Path, text: str) -> Path:
    """Write a pins file."""
    path = tmp_path / "pins.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_pin_by_schedule(tmp_path: Path) -> None:
    """A pinned failure is known, another is not, and a fixed one is found."""
    pins = read_pins(pins_file(tmp_path, PIN))
    assert pins.know(BROKEN)
    assert not pins.know(ExperimentResult("other", parse(AT), 0, Verdict.BROKEN, FOUND))
    assert pins.fixed([BROKEN], ORACLES) == ()
    assert [str(pin) for pin in pins.fixed([HELD], ORACLES)] == [f"orders[{AT}]"]
    assert pins.fixed([ExperimentResult("orders", parse(AT), 0, Verdict.HUNG)], ORACLES) == ()


def test_pin_by_fingerprint_knows_one_failure(tmp_path: Path) -> None:
    """A pin with a fingerprint is no pass for another failure of the same schedule."""
    mark = f'fingerprint = "{BROKEN.fingerprint}"\n'
    both = read_pins(pins_file(tmp_path, PIN + mark))
    other = ExperimentResult("orders", parse(AT), 0, Verdict.BROKEN, (Violation("other", "x"),))
    assert both.know(BROKEN)
    assert not both.know(other)
    assert both.fixed([BROKEN], ORACLES) == ()
    assert both.fixed([other], ORACLES) == both.known, "what it names is gone, another is there"


@pytest.mark.parametrize("oracles", [("no-effect-twice",), ("a", "no-effect-twice", "x", "z")])
def test_pin_by_fingerprint_alone_is_seen_fixed(tmp_path: Path, oracles: tuple[str, ...]) -> None:
    """Bug: a pin with only a fingerprint was never asked to be unpinned.

    Its experiment is found by what it would be if it broke; a run that did not cover that scenario
    and moment says nothing.
    """
    found = tuple(Violation(name, "found") for name in oracles)
    failure = ExperimentResult("orders", parse(AT), 0, Verdict.BROKEN, found)
    pin = f'[[pin]]\nfingerprint = "{failure.fingerprint}"\nreason = "later"\ndate = 2026-11-30\n'
    pins = read_pins(pins_file(tmp_path, pin))
    assert pins.know(failure)
    assert pins.fixed([failure], ORACLES) == ()
    assert [str(each) for each in pins.fixed([HELD], ORACLES)] == [failure.fingerprint]
    elsewhere = (
        ExperimentResult("other", parse(AT), 0, Verdict.HELD),
        ExperimentResult("orders", parse("order.charge.before=kill"), 0, Verdict.HELD),
        ExperimentResult("orders", parse(AT), 0, Verdict.NOT_FIRED),
    )
    assert pins.fixed(elsewhere, ORACLES) == ()
    assert pins.fixed([*elsewhere, HELD], ()) == (), "oracles that are gone find nothing"
    differently = ExperimentResult("orders", parse(AT), 0, Verdict.BROKEN, (Violation("b", "x"),))
    assert pins.fixed([differently], ORACLES) == pins.known


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[pin", "is not TOML"),
        ("[[pins]]\n", "'pin'"),
        ("pin = 3\n", "written as"),
        (PIN.replace("reason", "raeson"), "'reason'"),
        (PIN.replace('"later"', '" "'), "gives no reason"),
        (PIN.replace('reason = "later"\n', ""), "pins.toml: pin 1: .* missing .* `reason`"),
        (PIN.replace("date = 2026-11-30\n", ""), "pins.toml: pin 1 has no date such as"),
        *[
            (PIN.replace("2026-11-30", other), "pins.toml: pin 1 has no date such as 2026-11-30")
            for other in ('"yesterday"', '"2026-11-30"', "2026-11-30T12:00:00", "12:00:00", "3")
        ],
        (PIN.replace(f'schedule = "{AT}"\n', ""), "names neither"),
        (PIN.replace('scenario = "orders"\n', ""), "names neither"),
        (PIN + PIN.replace('"later"', "3"), r"pin 2: Expected `str`, got `int` - at `\$.reason`"),
        (PIN.replace(f'"{AT}"', "[]"), r"Expected `str`, got `array` - at `\$.schedule`"),
        (PIN.replace("=kill", "=kil"), "pin 1: unknown fault 'kil'; did you mean 'kill'"),
        (PIN.replace(".after", ".aftr"), r"pin 1: .*; did you mean 'order\.charge\.after'"),
    ],
)
def test_malformed_pins_are_refused(tmp_path: Path, text: str, message: str) -> None:
    """A pin without reason or date, or with a misspelt key, is a usage error."""
    with pytest.raises(UsageError, match=message):
        read_pins(pins_file(tmp_path, text))


@pytest.mark.parametrize("wrong", ["oder.charge.after", "order.chrage.after"])
def test_a_pin_at_a_point_that_is_not_declared_is_refused(tmp_path: Path, wrong: str) -> None:
    """It never matched anything, and nobody was told."""
    pins = read_pins(pins_file(tmp_path, PIN.replace("order.charge.after", wrong)))
    declared = Catalogue([DeclaredPoint("order.charge.after", "shop.py", 3)])
    with pytest.raises(UsageError, match=rf"pin of orders\[{wrong}.*'order\.charge\.after'"):
        pins.check({"orders": declared})
    pins.check({"other": declared, "orders": Catalogue([])})
    read_pins(pins_file(tmp_path, PIN)).check({"orders": declared})


def test_missing_file_is_refused(tmp_path: Path) -> None:
    """A pins file that is named has to be there."""
    with pytest.raises(UsageError, match="no pins file"):
        read_pins(tmp_path / "nowhere.toml")
