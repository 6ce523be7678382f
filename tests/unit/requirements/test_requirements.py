"""Requirements, tests and documents belong together, and docs/requirements-tests.md says how."""

from __future__ import annotations

import os
import re

import pytest
from requirement_documents import BINDING, ROOT, ids_in, other_ids, requirements
from requirement_table import NO_TEST, TABLE, cited_by_id, marked_by_id, render
from requirement_uses import docstrings_of, markers_of, sources

NOT_TESTED_YET: frozenset[str] = frozenset()
"""Binding requirements that no test and no scenario is about. It may only shrink."""

CODE = ("tests", "scenarios", "harness", "worker_under_test", "benchmarks")
ELSEWHERE = re.compile(r"\b(?:[Rr]ules?|[Ii]ssues?|[Ss]ections?) \d|\bDesign, [a-z*]")
"""What cites a document that is not here: a number, or a heading, of something unnamed."""

SAMPLE = '''
"""INB-01: a module."""
import pytest


def test_named_in_a_docstring_only():
    """INB-02: it says so."""


@pytest.mark.requirement("INB-03", "OUT-09..OUT-11")
@pytest.mark.parametrize(
    "case", [1, pytest.param(2, marks=pytest.mark.requirement("INB-04"))]
)
async def test_marked(case):
    """Plain words."""


@pytest.mark.requirement("INB-05")
def not_a_test():
    """Plain words."""


@pytest.mark.requirement("INB-06")
class TestTogether:
    @pytest.mark.requirement("INB-07")
    def test_one(self):
        """Plain words."""


@pytest.mark.requirement("INB-08")
class TestInherited(Machine):
    """Plain words."""
'''


def test_table_is_the_one_that_is_generated() -> None:
    """The committed table is what markers say; CRASH_HARNESS_GOLDEN=write writes it anew."""
    table, text = ROOT / TABLE, render()
    if os.environ.get("CRASH_HARNESS_GOLDEN") == "write":
        table.write_text(text, encoding="utf-8")
    assert table.read_text(encoding="utf-8") == text


def test_documents_define_every_requirement_once() -> None:
    """All 373 are there, 246 of them binding, and no id is defined twice."""
    kinds = list(requirements().values())
    assert (len(kinds), sum(kind in BINDING for kind in kinds)) == (373, 246)
    others = other_ids()
    assert len(others) == len(set(others))


def test_every_binding_requirement_has_a_test_or_a_scenario() -> None:
    """One that nothing is about fails here; so does one that has a test and is still listed."""
    named = {*marked_by_id(), *cited_by_id()}
    without = {name for name, kind in requirements().items() if kind in BINDING} - named
    assert without == NOT_TESTED_YET
    assert render().count(NO_TEST) >= len(without)


def test_every_id_that_is_used_is_defined() -> None:
    """Markers, docstrings and comments name what the documents have; a misspelt id fails here."""
    known = {*requirements(), *other_ids()}
    unknown = {
        (path, name)
        for path, text in sources(*CODE)
        if path != here()
        for name in ids_in(text) - known
    }
    assert unknown == set()


def test_tests_name_ids_in_markers_alone() -> None:
    """The docstring of a test is a sentence; an id in it would look like a link and be none."""
    named = {
        place: ids
        for path, text in sources("tests")
        if path != here()
        for place, ids in docstrings_of(path, text).items()
        if place.rpartition("::")[2].lower().startswith("test")
    }
    assert named == {}


def test_what_is_cited_is_in_the_repository() -> None:
    """No docstring, comment or document cites the rules, issues or sections of one elsewhere."""
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    texts = [(path.name, path.read_text(encoding="utf-8")) for path in documents]
    cited = {
        (place, match.group())
        for place, text in [*texts, *sources(*CODE)]
        for match in ELSEWHERE.finditer(text)
    }
    assert cited == set()


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("OUT-09..OUT-10, OUT-09 to OUT-11, DEL-02.", {"OUT-09", "OUT-10", "OUT-11", "DEL-02"}),
        ("INV-9 to INV-11", {"INV-9", "INV-10", "INV-11"}),
        ("CP-A1..CP-A2, and M-13", {"CP-A1", "CP-A2", "M-13"}),
        ("BP-X01, ISO-8601, UTF-8, NOTINB-01", set()),
    ],
)
def test_ids_are_read_from_text(text: str, ids: set[str]) -> None:
    """A range names all of it, and what only looks like an id is none."""
    assert ids_in(text) == ids


def test_only_markers_of_tests_count() -> None:
    """A docstring and a marker of something else link nothing; parameters and classes do."""
    assert markers_of("tests/test_sample.py", SAMPLE) == {
        "tests/test_sample.py::test_named_in_a_docstring_only": set(),
        "tests/test_sample.py::test_marked": {"INB-03", "INB-04", "OUT-09", "OUT-10", "OUT-11"},
        "tests/test_sample.py::TestTogether::test_one": {"INB-06", "INB-07"},
        "tests/test_sample.py::TestInherited": {"INB-08"},
    }
    assert markers_of("tests/sample.py", SAMPLE) == {}
    assert docstrings_of("a.py", SAMPLE) == {
        "a.py": {"INB-01"},
        "a.py::test_named_in_a_docstring_only": {"INB-02"},
    }


def test_a_mark_for_the_whole_module_counts_for_each_test() -> None:
    """``pytestmark`` is a marker of every test in the file."""
    text = 'pytestmark = pytest.mark.requirement("INB-01")\ndef test_it(): ...\n'
    assert markers_of("test_sample.py", text) == {"test_sample.py::test_it": {"INB-01"}}


def here() -> str:
    """Return the path of this file, whose samples name what they like."""
    return "tests/unit/requirements/test_requirements.py"
