"""Where ids are used: the markers of tests, and docstrings, read from the source.

The source is read and not collected by pytest, so that one look takes a second and needs none of
the libraries that the tests import. What pytest would not collect as a test does not count.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from requirement_documents import ROOT, ids_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def sources(*folders: str) -> Iterator[tuple[str, str]]:
    """Give the path from the root, and the text, of each Python file under the folders."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield _from_root(path), path.read_text(encoding="utf-8")


def markers_of(path: str, text: str) -> dict[str, set[str]]:
    """Return the ids that the markers of each test in a file name, by node id.

    A marker may stand on the test, on a parameter of it, on its class, or be the ``pytestmark`` of
    the module. A docstring is not a marker.

    Args:
        path: The file's path from the root.
        text: Its source.
    """
    if not path.rpartition("/")[2].startswith("test_"):
        return {}
    module = ast.parse(text)
    found: dict[str, set[str]] = {}
    _add_tests(found, path, module.body, _marked(_pytestmark(module.body)))
    return found


def docstrings_of(path: str, text: str) -> dict[str, set[str]]:
    """Return the ids that each docstring in a file names.

    Args:
        path: The file's path from the root.
        text: Its source.

    Returns:
        The ids by place: the path for the module, ``PATH::NAME`` for a class or a function.
    """
    found: dict[str, set[str]] = {}
    _add_docstrings(found, path, ast.parse(text))
    return {place: ids for place, ids in found.items() if ids}


def _add_tests(
    found: dict[str, set[str]], place: str, body: list[ast.stmt], outer: set[str]
) -> None:
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            ids = outer | _marked(node.decorator_list) | _marked(_pytestmark(node.body))
            inherited = not any(_is_test(each) for each in node.body)
            if inherited:
                found[f"{place}::{node.name}"] = ids
            _add_tests(found, f"{place}::{node.name}", node.body, ids)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_test(node):
            found[f"{place}::{node.name}"] = outer | _marked(node.decorator_list)


def _is_test(node: ast.stmt) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return node.name.startswith("test")


def _pytestmark(body: list[ast.stmt]) -> list[ast.expr]:
    return [
        node.value
        for node in body
        if isinstance(node, ast.Assign) and "pytestmark" in map(ast.unparse, node.targets)
    ]


def _marked(expressions: Iterable[ast.expr]) -> set[str]:
    """Return the ids in every call of the marker within the expressions."""
    return {
        each
        for expression in expressions
        for node in ast.walk(expression)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.requirement"
        for argument in node.args
        for each in ids_in(ast.literal_eval(argument))
    }


def _add_docstrings(found: dict[str, set[str]], place: str, node: Documented) -> None:
    found[place] = found.get(place, set()) | ids_in(ast.get_docstring(node) or "")
    for each in node.body:
        if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            _add_docstrings(found, f"{place}::{each.name}", each)


def _from_root(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
