"""Every binding requirement is named by a test or a scenario.

``tests/data/requirements.csv`` lists ids and kinds (S: stated, I: follows, X: recommended). Areas
are added by adding their rows.
"""

from __future__ import annotations

import ast
import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
LISTED = ROOT / "tests" / "data" / "requirements.csv"
BINDING = frozenset("SI")
NAMED = re.compile(r"([A-Z]{3})-(\d\d)(?:(?:\.\.| to )(?:\1-)?(\d\d))?")


def docstrings() -> Iterator[str]:
    """Give every docstring of the tests and the scenarios, but for this file's."""
    for folder in ("tests", "scenarios"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path == Path(__file__):
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(
                    node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
                ):
                    yield ast.get_docstring(node) or ""


def named_in(text: str) -> set[str]:
    """Return the requirements that a text names; ``OUT-09..OUT-12`` and ``to`` name four."""
    return {
        f"{area}-{number:02}"
        for area, first, last in NAMED.findall(text)
        for number in range(int(first), int(last or first) + 1)
    }


def test_a_range_names_all_of_it() -> None:
    """HAR-01: the reading of ids that the other test rests on."""
    assert named_in("OUT-09..OUT-10, OUT-09 to OUT-11, DEL-02.") == {
        "OUT-09",
        "OUT-10",
        "OUT-11",
        "DEL-02",
    }


def test_every_binding_requirement_is_named() -> None:
    """HAR-01: one that no docstring names fails here, by its id."""
    with LISTED.open(encoding="utf-8", newline="") as file:
        binding = [row["requirement"] for row in csv.DictReader(file) if row["kind"] in BINDING]
    named = set().union(*map(named_in, docstrings()))
    assert [each for each in binding if each not in named] == []
