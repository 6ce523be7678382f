"""The table of requirements and their tests, as Markdown."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from requirement_documents import other_ids, requirements
from requirement_uses import docstrings_of, markers_of, sources

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TABLE = "docs/requirements-tests.md"
NO_TEST = "no test yet"
HEAD = """\
# Requirements and their tests

Which tests and scenarios are about which of the [requirements](requirements.md), and of the
[checkpoint package's](requirements-checkpoint.md). S and I bind, X is recommended. The table is
generated, from the markers of the tests and the docstrings of the scenarios:
`CRASH_HARNESS_GOLDEN=write pytest tests/unit/requirements`.

"""


def marked_by_id() -> dict[str, list[str]]:
    """Return the node ids of the tests that are marked with each id, without parameters."""
    return _by_id(markers_of, "tests")


def cited_by_id() -> dict[str, list[str]]:
    """Return the scenario files, and the classes in them, whose docstrings name each id."""
    return _by_id(docstrings_of, "scenarios")


def render() -> str:
    """Return the whole document."""
    tests, scenarios = marked_by_id(), cited_by_id()
    rows = ["| id | kind | tests | scenarios |", "|---|---|---|---|"]
    for name, kind in requirements().items():
        nobody = name not in tests and name not in scenarios
        where = NO_TEST if nobody else _cell(tests.get(name, ()))
        rows.append(f"| {name} | {kind} | {where} | {_cell(scenarios.get(name, ()))} |")
    rows += ["", "## Invariants, known-bad workers, crash points and decisions", ""]
    rows += ["Those that a marker or the docstring of a scenario names.", ""]
    rows += ["| id | tests | scenarios |", "|---|---|---|"]
    rows += [
        f"| {name} | {_cell(tests.get(name, ()))} | {_cell(scenarios.get(name, ()))} |"
        for name in sorted(other_ids(), key=_group)
        if name in tests or name in scenarios
    ]
    return HEAD + "\n".join(rows) + "\n"


def _by_id(read: Callable[[str, str], Mapping[str, set[str]]], folder: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path, text in sources(folder):
        for place, ids in read(path, text).items():
            for name in ids:
                found[name].append(place)
    return dict(found)


def _cell(places: list[str] | tuple[str, ...]) -> str:
    return "<br>".join(f"`{place}`" for place in places)


def _group(name: str) -> int:
    return ("INV", "M", "CP", "AMB").index(name.partition("-")[0])
