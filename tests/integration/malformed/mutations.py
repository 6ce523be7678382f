"""Ways in which a file can be other than it should be, drawn by Hypothesis.

What is drawn is the text of a whole file. Documents are damaged as values (a node is replaced,
removed, doubled, nested) or as bytes (a bit, a cut, a piece twice), so that some of it still has
the right shape and gets far, and some does not even have the right letters.
"""

from __future__ import annotations

import copy
import json
from typing import TypeAlias

from hypothesis import strategies as st

Node: TypeAlias = "dict[str, Node] | list[Node] | str | int | float | bool | None"
Place: TypeAlias = "tuple[dict[str, Node] | list[Node], str | int]"

DEEP = 10_000
"""More levels than any parser goes down by itself."""

TEXTS = (
    "",
    " ",
    "\x00",
    "a\x00b",
    "\ud800",
    "\u202e\x1b[31m",
    "\u0663",
    "\uff11\uff12",
    "..",
    "../../outside",
    "/outside",
    "~nouser",
    "~nouser/x",
    "~",
    ".",
    "con/nul",
    "x" * 5_000,
    "9" * 5_000,
    "null",
    "killed by SIGFOO",
    "killed by SIGRTMIN+1",
    "exited with code " + "9" * 5_000,
    "exited with code \u0663",
    "a.b.before#0=kill",
    "a.b.before[" * 200,
    "a.b.before#1=kill" + " / a.b.after#1=kill" * 500,
)
NUMBERS = (
    0,
    -1,
    1,
    2**31,
    2**63,
    -(2**63) - 1,
    2**64,
    10**400,
    10**4000,
    1.5,
    -0.0,
    1e308,
)
RAW = (
    "9" * 5_000,
    "-" + "9" * 5_000,
    "1e999",
    "NaN",
    "-Infinity",
    "\u0663",
    "0x10",
    "01",
    "[" * DEEP,
    "[" * DEEP + "]" * DEEP,
    '{"a":' * DEEP + "1" + "}" * DEEP,
    '"\\ud800"',
    '"\\u0000"',
    "'single'",
    "",
    "\x00",
)
"""Pieces of text that stand where a value should; not all of them are JSON."""

_MARK = "\u2603here\u2603"

leaves: st.SearchStrategy[Node] = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(NUMBERS),
    st.sampled_from(TEXTS),
    st.text(max_size=20),
    st.integers(),
)
values: st.SearchStrategy[Node] = st.one_of(
    leaves,
    st.lists(leaves, max_size=3),
    st.dictionaries(st.one_of(st.sampled_from(TEXTS), st.text(max_size=8)), leaves, max_size=3),
)


def places(node: Node) -> list[Place]:
    """Return every place in a document at which a node stands: what holds it, and its key."""
    found: list[Place] = []
    if isinstance(node, dict):
        pairs: list[tuple[str | int, Node]] = list(node.items())
    elif isinstance(node, list):
        pairs = list(enumerate(node))
    else:
        return found
    for key, inner in pairs:
        found.append((node, key))
        found += places(inner)
    return found


def _get(place: Place) -> Node:
    holder, key = place
    return holder[key]  # type: ignore[index]


def _put(place: Place, value: Node) -> None:
    holder, key = place
    holder[key] = value  # type: ignore[index]


def _remove(place: Place) -> None:
    holder, key = place
    del holder[key]  # type: ignore[arg-type]


def _dumped(document: Node) -> str:
    return json.dumps(document, ensure_ascii=True)


@st.composite
def damaged_value(draw: st.DrawFn, document: Node) -> str:
    """Draw the JSON text of a document of which one node, or several, are other."""
    made = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        every = places(made)
        if every:
            place = draw(st.sampled_from(every))
            if draw(st.integers(0, 7)) == 0:
                _put(place, _MARK)
                return _dumped(made).replace(_dumped(_MARK), draw(st.sampled_from(RAW)))
            draw(st.sampled_from(DAMAGES))(draw, place, every)
    return _dumped(made)


def _replace(draw: st.DrawFn, place: Place, _every: list[Place]) -> None:
    _put(place, draw(values))


def _leave_out(_draw: st.DrawFn, place: Place, _every: list[Place]) -> None:
    _remove(place)


def _put_another(draw: st.DrawFn, place: Place, every: list[Place]) -> None:
    _put(place, copy.deepcopy(_get(draw(st.sampled_from(every)))))


def _wrap(draw: st.DrawFn, place: Place, _every: list[Place]) -> None:
    inner = _get(place)
    wrapped: list[Node] = [[inner], {"a": inner}, [[[inner]]]]
    _put(place, draw(st.sampled_from(wrapped)))


def _grow(draw: st.DrawFn, place: Place, _every: list[Place]) -> None:
    inner = _get(place)
    if isinstance(inner, list):
        _put(place, inner * draw(st.integers(2, 40)))


def _add(draw: st.DrawFn, place: Place, _every: list[Place]) -> None:
    inner = _get(place)
    if isinstance(inner, dict):
        inner[draw(st.sampled_from(TEXTS))] = draw(values)


DAMAGES = (_replace, _replace, _leave_out, _put_another, _wrap, _grow, _add)


@st.composite
def doubled_key(draw: st.DrawFn, document: Node) -> str:
    """Draw the JSON text of a document in which a key stands twice."""
    made = copy.deepcopy(document)
    inner = [place for place in places(made) if isinstance(place[0], dict)]
    holder, key = draw(st.sampled_from(inner))
    assert isinstance(holder, dict)
    holder[_MARK] = draw(values)
    return _dumped(made).replace(_dumped(_MARK), _dumped(str(key)))


@st.composite
def damaged_bytes(draw: st.DrawFn, text: str) -> bytes:
    """Draw a text of which bits are flipped, pieces cut out, doubled, or put in."""
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(draw(st.integers(1, 3))):
        if not data:
            break
        at = draw(st.integers(0, len(data) - 1))
        length = draw(st.integers(1, min(200, len(data) - at)))
        how = draw(st.sampled_from(["flip", "cut", "end", "twice", "put", "wrong"]))
        if how == "flip":
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif how == "cut":
            del data[at : at + length]
        elif how == "end":
            del data[at:]
        elif how == "twice":
            data[at:at] = data[at : at + length]
        elif how == "put":
            piece = draw(st.sampled_from([*TEXTS, *RAW, "\n", "\r", "\t", "=", '"', "#", "]", "}"]))
            data[at:at] = piece.encode("utf-8", "surrogatepass")
        else:
            data[at:at] = draw(st.sampled_from([b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\x00"]))
    return bytes(data)


def damaged_json(document: Node) -> st.SearchStrategy[bytes]:
    """Draw a damaged JSON file.

    Args:
        document: What stands in a right one.
    """
    return st.one_of(
        damaged_value(document).map(str.encode),
        damaged_value(document).map(str.encode),
        doubled_key(document).map(str.encode),
        damaged_bytes(json.dumps(document)),
    )
