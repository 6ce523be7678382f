"""The catalogue: every crash point that a program declares, read from its source.

Nothing is imported or run: the files are parsed. A point counts where `crash_point` is called, by
that name, by an alias of its import, or as an attribute.
"""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import UnknownNameError, UsageError
from harness.points import well_formed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FUNCTION = "crash_point"


@dataclass(frozen=True, slots=True, order=True)
class DeclaredPoint:
    """A crash point as it stands in the source.

    Attributes:
        label: Its label.
        file: Path of the file, relative to the directory that holds the package.
        line: Line of the call, from 1.
        context: Names of the context that it gives.
    """

    label: str
    file: str
    line: int
    context: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.line}"


class Catalogue:
    """The declared points of some packages.

    Args:
        points: Every declaration.

    Raises:
        UsageError: A label is declared at two places.
    """

    def __init__(self, points: Iterable[DeclaredPoint]) -> None:
        self._points: dict[str, DeclaredPoint] = {}
        for point in sorted(points):
            first = self._points.setdefault(point.label, point)
            if first != point:
                raise UsageError(
                    f"crash point {point.label!r} is declared twice: "
                    f"{first.source} and {point.source}; a label names one place"
                )

    def __iter__(self) -> Iterator[DeclaredPoint]:
        return iter(self._points.values())

    def __len__(self) -> int:
        return len(self._points)

    def __contains__(self, label: object) -> bool:
        return label in self._points

    def __getitem__(self, label: str) -> DeclaredPoint:
        try:
            return self._points[label]
        except KeyError:
            raise UnknownNameError("crash point", label, self._points) from None

    @property
    def labels(self) -> tuple[str, ...]:
        """Every label, sorted."""
        return tuple(self._points)


def scan(names: Iterable[str]) -> Catalogue:
    """Read the catalogue of packages or modules.

    Args:
        names: Import names, for example ``("worker_under_test",)``.

    Returns:
        The catalogue of all of them together.

    Raises:
        UsageError: A name cannot be found, a file is no Python, a label is no literal, is not well
            formed, or is declared twice.
    """
    found: list[DeclaredPoint] = []
    for name in sorted(set(names)):
        base, files = _files(name)
        for file in files:
            found.extend(_declared(file, file.relative_to(base).as_posix()))
    return Catalogue(found)


def _files(name: str) -> tuple[Path, list[Path]]:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError) as error:
        raise UsageError(f"no package or module {name!r} to read crash points from") from error
    if spec is None or not (spec.origin or spec.submodule_search_locations):
        raise UsageError(f"no package or module {name!r} to read crash points from")
    above = name.count(".") + 1
    if spec.submodule_search_locations:
        folder = Path(next(iter(spec.submodule_search_locations)))
        return folder.parents[above - 1], sorted(folder.rglob("*.py"))
    origin = Path(spec.origin or "")
    return origin.parents[above - 1], [origin]


def _declared(path: Path, shown: str) -> Iterator[DeclaredPoint]:
    text = path.read_text(encoding="utf-8")
    if _FUNCTION not in text:
        return
    try:
        tree = ast.parse(text, filename=shown)
    except SyntaxError as error:
        raise UsageError(f"{shown}:{error.lineno}: not Python: {error.msg}") from error
    names = {_FUNCTION}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {a.asname for a in node.names if a.name == _FUNCTION and a.asname}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node.func) in names:
            yield _point(node, shown)


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


def _point(call: ast.Call, shown: str) -> DeclaredPoint:
    where = f"{shown}:{call.lineno}"
    label = call.args[0] if call.args else None
    if not isinstance(label, ast.Constant) or not isinstance(label.value, str):
        raise UsageError(f"{where}: the label of a crash point must be a literal string")
    if not well_formed(label.value):
        raise UsageError(
            f"{where}: crash point {label.value!r} does not read noun.step.before|after|mid"
        )
    context = tuple(keyword.arg for keyword in call.keywords if keyword.arg)
    return DeclaredPoint(label.value, shown, call.lineno, context)
