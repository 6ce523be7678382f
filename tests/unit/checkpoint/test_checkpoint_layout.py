"""What the package imports, and where its crash points stand."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import worker_under_test.checkpoint as package
from harness.points import well_formed

FOLDER = Path(package.__file__).parent
TREES = {
    path.relative_to(FOLDER).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(FOLDER.rglob("*.py"))
}


@pytest.mark.requirement("COM-27", "CP-E1..CP-E5", "CP-F2")
def test_crash_points_are_declared_once() -> None:
    """The six points of the package stand once each, as literals, with run and number."""
    found = []
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "crash_point"
            ):
                (label,) = node.args
                assert isinstance(label, ast.Constant)
                assert well_formed(str(label.value))
                assert [keyword.arg for keyword in node.keywords] == ["run", "seq"]
                found.append((label.value, name))
    assert sorted(found) == [
        ("gate.seed.before", "committer.py"),
        ("snapshot.accept.after", "committer.py"),
        ("snapshot.commit.after", "committer.py"),
        ("snapshot.release.before", "committer.py"),
        ("snapshot.save.after", "stores/sqlite.py"),
        ("snapshot.save.mid", "stores/sqlite_table.py"),
    ]


@pytest.mark.requirement("STO-01", "PLN-01")
def test_the_package_knows_nothing_of_the_harness_but_points() -> None:
    """Imports stay inside the package, and only a store knows its medium."""
    media = {"aiosqlite", "sqlite3", "fcntl", "os"}
    for name, tree in TREES.items():
        modules = {
            module
            for node in ast.walk(tree)
            for module in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        ours = {
            module for module in modules if module.split(".")[0] in ("harness", "worker_under_test")
        }
        assert all(
            module == "harness.points" or module.startswith("worker_under_test.checkpoint")
            for module in ours
        ), name
        assert name.startswith("stores/") or not modules & media, name
