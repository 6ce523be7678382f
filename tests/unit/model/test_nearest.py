"""The nearest known name: what is near is found, what is far is not suggested."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.nearest import nearest

NAMES = st.text(string.ascii_lowercase + "-._", min_size=1, max_size=12)


@st.composite
def misspelt(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a name, and the name with one letter more, fewer, other, or swapped with the next."""
    name = draw(NAMES)
    at = draw(st.integers(0, len(name) - 1))
    letter = draw(st.sampled_from(string.ascii_lowercase))
    return name, draw(
        st.sampled_from(
            [
                name[:at] + letter + name[at:],
                name[:at] + name[at + 1 :],
                name[:at] + letter + name[at + 1 :],
                name[:at] + name[at : at + 2][::-1] + name[at + 2 :],
            ]
        )
    )


def one_edit_away(name: str) -> set[str]:
    """Return every name that one edit makes of a name, and the name itself."""
    letters = string.ascii_lowercase + "-._"
    cuts = [(name[:at], name[at:]) for at in range(len(name) + 1)]
    return (
        {name}
        | {left + letter + right for left, right in cuts for letter in letters}
        | {left + letter + right[1:] for left, right in cuts if right for letter in letters}
        | {left + right[1:] for left, right in cuts if right}
        | {left + right[1] + right[0] + right[2:] for left, right in cuts if len(right) > 1}
    )


@given(misspelt(), st.lists(NAMES, max_size=6))
def test_one_edit_of_a_known_name_is_answered_with_it(
    pair: tuple[str, str], others: list[str]
) -> None:
    """Whichever letter is wrong, unless another known name is as near."""
    name, written = pair
    found = nearest(written, [*others, name])
    rivals = {other for other in others if other in one_edit_away(written)}
    assert found == name or found in rivals


@given(NAMES, st.lists(NAMES, max_size=6))
def test_a_known_name_is_nearest_to_itself(name: str, others: list[str]) -> None:
    """No edit is fewer than any."""
    assert nearest(name, [*others, name]) == name


@given(st.text("abcdef", min_size=3), st.lists(st.text("uvwxyz", min_size=3)))
def test_names_without_a_letter_in_common_are_not_suggested(name: str, others: list[str]) -> None:
    """It takes an edit for each letter, and more than a third are too many."""
    assert nearest(name, others) is None


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("no-such-scenario", ["unknown-sent-again"], None),
        ("everything", ["reference", "orders"], None),
        ("reference-slow", ["reference"], None),
        ("Orders", ["orders"], "orders"),
        ("ack.send.befor", ["ack.send.before", "ack.sent.after"], "ack.send.before"),
        ("akc.sned.before", ["ack.send.before", "ack.send.after"], "ack.send.before"),
        ("ab", ["ba"], "ba"),
        ("x", [], None),
    ],
)
def test_examples(name: str, known: list[str], found: str | None) -> None:
    """Names as people misspell them."""
    assert nearest(name, known) == found
