"""The known name that a misspelt one most likely stands for, if one is near enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LETTERS_AN_EDIT = 3
"""How many letters of a name one edit may stand for: a name of nine is near within three edits."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that takes the fewest edits, or None if none is near.

    An edit puts in, leaves out or replaces a letter, or swaps two neighbours; upper and lower case
    are the same. One edit is always near; more are as long as they leave two thirds of the name.

    Args:
        name: The name as it was given.
        known: Every name that would have been right.
    """
    given = name.casefold()
    near = []
    for candidate in known:
        most = max(1, max(len(name), len(candidate)) // _LETTERS_AN_EDIT)
        if abs(len(name) - len(candidate)) <= most:
            edits = _edits(given, candidate.casefold())
            if edits <= most:
                near.append((edits, candidate))
    return min(near)[1] if near else None


def _edits(first: str, second: str) -> int:
    """Return the least number of edits, no letter edited twice (optimal string alignment)."""
    before: list[int] = []
    above = list(range(len(second) + 1))
    for row, letter in enumerate(first, start=1):
        current = [row]
        for column, other in enumerate(second, start=1):
            edits = min(
                above[column] + 1, current[column - 1] + 1, above[column - 1] + (letter != other)
            )
            swapped = row > 1 and column > 1 and (first[row - 2], second[column - 2])
            if swapped == (other, letter):
                edits = min(edits, before[column - 2] + 1)
            current.append(edits)
        before, above = above, current
    return above[-1]
