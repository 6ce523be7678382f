"""What each renderer makes of a small record, compared with what was looked at and committed."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from rendered import of_failure, of_run, terminal

from benchmarks.sample_records import failure_record, run_before, run_record
from harness.report.html_run import run_page

GOLDEN = Path(__file__).parent / "golden"
RENDERED = of_run(run_record(), run_before()) | of_failure(failure_record())


@pytest.mark.parametrize("name", sorted(RENDERED))
def test_output_is_the_golden_one(name: str) -> None:
    """Every renderer has a golden file; CRASH_HARNESS_GOLDEN=write writes them anew."""
    path = GOLDEN / name
    if os.environ.get("CRASH_HARNESS_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(RENDERED[name], encoding="utf-8")
    assert RENDERED[name] == path.read_text(encoding="utf-8")


def test_every_golden_file_has_a_renderer() -> None:
    """A golden file that nothing makes is left over."""
    assert {path.name for path in GOLDEN.iterdir()} == set(RENDERED)


@pytest.mark.parametrize("name", ["repro.py.txt", "test_repro.py.txt"])
def test_program_uses_the_public_interface_alone(name: str) -> None:
    """`repro.py` and the test to paste import nothing but the public API."""
    imported = {
        node.module
        for node in ast.walk(ast.parse(RENDERED[name]))
        if isinstance(node, ast.ImportFrom)
    }
    assert imported == {"pathlib", "harness"}


def test_terminal_has_colours_only_on_a_terminal() -> None:
    """Output is plain when it is not a terminal, or with NO_COLOR."""
    assert "\x1b" not in terminal(run_record())
    assert "\x1b[" in terminal(run_record(), colour=True)


def test_first_run_has_nothing_to_compare_with() -> None:
    """Without a run before, the page says so."""
    assert "There is no earlier record" in run_page(run_record(), None)


def test_unchanged_run_says_so() -> None:
    """Two equal runs: nothing changed."""
    assert "Nothing: the same experiments" in run_page(run_record(), run_record())
