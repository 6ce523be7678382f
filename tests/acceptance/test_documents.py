"""The documents: every block is run, and what they show is what is printed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest
from document_blocks import Block, DocumentError, blocks_in, blocks_of, documents
from document_runner import DocumentRunner, matches

if TYPE_CHECKING:
    from pathlib import Path

_INSTALL = "python3 -m venv --without-pip .venv && python3 -m pip --python .venv/bin/python install"

CHECKED_ELSEWHERE = {
    ("README.md", f"{_INSTALL} -q -e '.[runner]' && .venv/bin/crash-harness run"): (
        "installs from the registry and runs the whole smoke matrix; "
        "the environment `smoke` of tox does both"
    ),
    ("README.md", f"{_INSTALL} -q tox && .venv/bin/tox"): (
        "runs all tests, this one too; it is what CI calls (test_readme.py)"
    ),
    ("CONTRIBUTING.md", f"{_INSTALL} -q -e '.[runner,dev]'"): (
        "installs, and runs all tests and the whole matrix, as tox does"
    ),
    ("docs/postgresql.md", "pip install 'crash-harness[postgres]'"): (
        "installs from the registry, and starts a server that runs until it is told to end; "
        "tests/integration/world/test_postgres_server.py starts it"
    ),
    ("docs/postgresql.md", "export CRASH_HARNESS_COORDINATOR_DB='postgresql://"): (
        "needs that server; tests/integration/world/test_postgres_smoke.py runs a matrix on one"
    ),
    ("docs/postgresql.md", "psql \"$CRASH_HARNESS_COORDINATOR_DB\" -c '\\dn'"): (
        "needs that server, and psql"
    ),
    ("docs/reports.md", "$ crash-harness report reports/runs/20261203T060106Z"): (
        "needs a run that was killed at that moment; test_resume.py kills some, and looks"
    ),
    ("docs/coordinator.md", "id: 1"): (
        "what goes over the wire; tests/integration/world/test_coordinator_document.py compares"
    ),
}
"""Blocks that are not run here, by document and first line, and why not."""


def _listed(block: Block) -> bool:
    return any(
        block.document == document and block.key[1].startswith(first)
        for document, first in CHECKED_ELSEWHERE
    )


@pytest.mark.parametrize("document", documents())
def test_document_does_what_it_says(document: str, tmp_path: Path) -> None:
    """Every block of a document, in its order, in an empty folder, by the letter."""
    runner = DocumentRunner(tmp_path)
    for block in blocks_of(document):
        if not _listed(block):
            runner.run(block)


def test_list_of_blocks_that_are_not_run_is_true() -> None:
    """A block that is changed or gone must not stay excused."""
    keys = [block.key for document in documents() for block in blocks_of(document)]
    for document, first in CHECKED_ELSEWHERE:
        excused = [key for key in keys if key[0] == document and key[1].startswith(first)]
        assert len(excused) == 1, (document, first)


@pytest.mark.parametrize("document", documents())
def test_examples_import_from_the_front_door_alone(document: str) -> None:
    """A reader learns the public names, and none that may change from one version to the next.

    Production code may import `harness.points`, for the documents say that it costs nothing.
    """
    for block in blocks_of(document):
        if block.kind != "python":
            continue
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            ours = {name for name in names if name.split(".")[0] == "harness"}
            assert ours <= {"harness", "harness.points"}, block


@pytest.mark.parametrize(
    ("kind", "notes", "text", "reason"),
    [
        ("none", "", "whatever", "nobody knows how to run"),
        ("ruby", "", "puts 1", "nobody knows how to run"),
        ("python", "", "raise SystemExit(3)", "exit code 3, not 0"),
        ("python", "file: a.py; replaces: there", "def here(): pass", "no 'there' to replace"),
        ("sh", "", "false\ntrue", "exit code 1, not 0"),
        ("console", "", "echo a", "begins with"),
        ("console", "", "$ echo a\nb", "echo a"),
        ("console", "", "$ echo a", "echo a"),
        ("console", "exits: 1", "$ echo a\na", "exit code 0, not 1"),
        ("console", "exits: 1", "$ false\n$ false", "exit code 1, not 0"),
    ],
)
def test_untrue_block_is_found(
    tmp_path: Path, kind: str, notes: str, text: str, reason: str
) -> None:
    """A block that is of an unknown kind, fails, or prints something else fails its test."""
    (tmp_path / "a.py").write_text("def other(): pass\n", encoding="utf-8")
    fence = f"```{'' if kind == 'none' else kind}\n{text}\n```\n"
    (block,) = blocks_in(f"<!-- {notes} -->\n{fence}" if notes else fence, "page.md")
    with pytest.raises(DocumentError, match=reason):
        DocumentRunner(tmp_path).run(block)


def test_indented_code_and_unknown_notes_are_found() -> None:
    """No block is passed over because of how it is written, and no misspelt note."""
    (indented,) = blocks_in("Text.\n\n    code\n", "page.md")
    assert indented.kind == "indented"
    with pytest.raises(DocumentError, match=r"page\.md:2: unknown note 'exit'"):
        blocks_in("<!-- exit: 1 -->\n```sh\nfalse\n```\n", "page.md")


@pytest.mark.parametrize(
    ("output", "shown", "same"),
    [
        ("a  \nb\n", "a\nb", True),
        ("a\nb\n", "a", False),
        ("took 1.2 s\n", "took ... s", True),
        ("took 1.2 s\nb\n", "took ... s", False),
        ("a\nb\nc\nd\n", "a\n...\nd", True),
        ("a\nd\n", "a\n...\nd", True),
        ("a\nb\n", "a\n...\nd", False),
        ("(a) [b]\n", "(a) [b]", True),
    ],
)
def test_output_is_compared(output: str, shown: str, same: bool) -> None:
    """Only ``...`` stands for something else than itself."""
    assert matches(output, shown) is same
