"""Scenarios as values: what is refused when one is made."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness_doubles import NamedOracle, scenario

from harness.explore.tiers import TIERS
from harness.model.errors import UnknownNameError, UsageError
from harness.scenario import HOLDS, TIER_NAMES, broken_by


@pytest.mark.parametrize("name", ["a", "orders", "known-bad.ack_first", "2nd-try", "a1"])
def test_names_that_read_well(name: str) -> None:
    """Lower-case words joined by signs that a shell leaves alone."""
    assert scenario(name).name == name


@pytest.mark.parametrize("name", ["", "A", "a b", "a/b", "-a", "a-", "a--b", "a\n", "ä", "a[b]"])
def test_names_that_do_not(name: str) -> None:
    """Anything else is refused at once."""
    with pytest.raises(UsageError, match="is not lower-case words"):
        scenario(name)


def test_a_scenario_without_an_oracle_is_refused() -> None:
    """Without an oracle nothing could ever be broken."""
    with pytest.raises(UsageError, match="has no oracle"):
        scenario(oracles=())


def test_two_oracles_of_one_name_are_refused() -> None:
    """A violation names its oracle, so a name means one."""
    with pytest.raises(UsageError, match="two oracles of one name"):
        replace(scenario(), oracles=(NamedOracle("x", ("a",)), NamedOracle("x", ("b",))))


def test_a_pin_names_an_oracle_of_the_scenario() -> None:
    """A pin to an oracle that could not catch anything is an error."""
    with pytest.raises(UnknownNameError, match="unknown oracle 'fist'; did you mean 'first'"):
        scenario(pin=broken_by("fist"))


def test_a_pin_reads_as_it_is_written() -> None:
    """The record shows a pin as the text that was written."""
    assert (str(HOLDS), str(broken_by("first"))) == ("holds", "broken:first")
    assert str(broken_by("first", tier="full")) == "broken:first@full"


def test_a_pin_names_a_tier_that_there_is() -> None:
    """A misspelt tier is refused where it is written, and the tiers are those that can be run."""
    with pytest.raises(UnknownNameError, match="unknown tier 'fill'; did you mean 'full'"):
        broken_by("first", tier="fill")  # type: ignore[arg-type]
    assert set(TIER_NAMES) == set(TIERS)


def test_every_scenario_can_be_pinned_by_the_oracle_that_judges_all() -> None:
    """A worker that never starts again is a known-bad one like any other."""
    assert str(scenario(pin=broken_by("starts-again")).pin) == "broken:starts-again"
