"""The ids that the documents define, and the reading of ids in text."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
REQUIREMENTS = ("docs/requirements.md", "docs/requirements-checkpoint.md")
DOCUMENTS = (*REQUIREMENTS, "docs/points.md")
BINDING = frozenset("SI")
"""The kinds of which each requirement needs a test or a scenario."""

REQUIREMENT_ROW = re.compile(r"^\| ([A-Z]{3}-\d\d) \| ([SIX]) \| ", re.MULTILINE)
OTHER_ROW = re.compile(r"^\| (INV-\d+|M-\d\d|AMB-\d+|CP-[A-Z]\d) \| ", re.MULTILINE)
ID = r"(?:[A-Z]{3}-\d\d(?!\d)|INV-\d+|M-\d\d(?!\d)|AMB-\d+|CP-[A-Z]\d)"
RANGE = re.compile(rf"(?<![\w-])({ID})(?:(?:\.\.| to )({ID}))?")


def requirements() -> dict[str, str]:
    """Return the kind of each requirement, in the order of the documents."""
    return {
        name: kind
        for document in REQUIREMENTS
        for name, kind in REQUIREMENT_ROW.findall(_text(document))
    }


def other_ids() -> list[str]:
    """Return the ids of crash points, invariants, known-bad workers and decisions."""
    return [name for document in DOCUMENTS for name in OTHER_ROW.findall(_text(document))]


def ids_in(text: str) -> set[str]:
    """Return the ids that a text names; ``OUT-09..OUT-12`` and ``OUT-09 to OUT-12`` name four.

    Args:
        text: A docstring, or an argument of the marker.
    """
    found: set[str] = set()
    for first, last in RANGE.findall(text):
        found |= {each for each in (first, last) if each}
        stem = first.rstrip("0123456789")
        digits = first.removeprefix(stem)
        if last and last.rstrip("0123456789") == stem:
            numbers = range(int(digits), int(last.removeprefix(stem)))
            found |= {f"{stem}{number:0{len(digits)}}" for number in numbers}
    return found


def _text(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")
