"""Lists of seeds, as they are written on the command line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cli.seed_ranges import MOST_SEEDS, parse_seeds
from harness.model.errors import UsageError

_RANGES = st.lists(
    st.tuples(st.integers(0, 10**12), st.integers(0, 40)).map(lambda r: (r[0], r[0] + r[1])),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("7", (7,)),
        ("1-10", tuple(range(1, 11))),
        ("0,3,7-9", (0, 3, 7, 8, 9)),
        (" 2 - 4 , 1 ", (2, 3, 4, 1)),
        ("5-5,5,4-6", (5, 4, 6)),
        ("007", (7,)),
    ],
)
def test_list_names_its_seeds_in_order_and_once(text: str, seeds: tuple[int, ...]) -> None:
    """Runs come in the order that was asked for, and no seed is run twice."""
    assert parse_seeds(text) == seeds


@given(_RANGES)
def test_every_list_that_can_be_written_is_read_as_it_was_meant(
    ranges: list[tuple[int, int]],
) -> None:
    """Both ends of a range belong to it, wherever ranges overlap."""
    text = ",".join(f"{first}-{last}" for first, last in ranges)
    meant = dict.fromkeys(seed for first, last in ranges for seed in range(first, last + 1))
    assert parse_seeds(text) == tuple(meant)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "found nothing where a seed should be"),
        ("  ", "found nothing where a seed should be"),
        ("1,,2", "found an empty place between commas"),
        ("1,2,", "found an empty place between commas"),
        ("x", "'x' is neither a whole number from 0 nor a range"),
        ("3,1-x", "'1-x' is neither a whole number from 0 nor a range"),
        ("-3", "'-3' is neither a whole number from 0 nor a range"),
        ("1-2-3", "'1-2-3' is neither a whole number from 0 nor a range"),
        ("1.5", "'1.5' is neither a whole number from 0 nor a range"),
        ("²", "'²' is neither a whole number from 0 nor a range"),
        ("٣", "'٣' is neither a whole number from 0 nor a range"),
        ("1..10", "'1..10' is neither a whole number from 0 nor a range"),
        ("9-7", "the range 9-7 runs backwards; did you mean 7-9?"),
        ("0-999999999999999", f"more than {MOST_SEEDS:,} seeds"),
        ("0-9999,10000", f"more than {MOST_SEEDS:,} seeds"),
        ("1" * 5000, "has 5000 digits"),
    ],
)
def test_what_is_wrong_is_said_in_a_short_sentence(text: str, sentence: str) -> None:
    """A list that cannot be read is refused with what is wrong in it, whatever its length."""
    with pytest.raises(UsageError) as caught:
        parse_seeds(text)
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 300


def test_as_many_seeds_as_allowed_are_read() -> None:
    """The limit itself is allowed."""
    assert len(parse_seeds(f"0-{MOST_SEEDS - 1}")) == MOST_SEEDS


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text leads to another error than the one that the command shows as a sentence."""
    try:
        seeds = parse_seeds(text)
    except UsageError:
        return
    assert seeds
    assert len(set(seeds)) == len(seeds)
