"""JSON text: what is split over lines is the same value."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.model.canonical_json import Json, one_item_a_line

VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=25,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(VALUES, st.integers(1, 60))
def test_text_to_be_compared_is_the_same_value(value: Json, width: int) -> None:
    """The gallery's records are JSON, one item a line where a line would be too long."""
    text = one_item_a_line(value, width)
    assert json.loads(text) == value
    assert text.endswith("\n")


def test_only_what_is_too_long_is_split() -> None:
    """A changed item is a changed line."""
    assert one_item_a_line({"a": [1, 2], "b": {"c": "long enough"}}, 20) == (
        '{\n "a": [1, 2],\n "b": {\n  "c": "long enough"\n }\n}\n'
    )
