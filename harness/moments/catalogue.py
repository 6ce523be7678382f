"""The catalogue: every crash point that a program declares, read from its source.

Nothing is imported or run: the files are parsed. A point counts where `crash_point` is called, by
that name, by an alias of its import, or as an attribute.
"""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from harness.model.errors import UnknownNameError, UsageError
from harness.model.regular_file import read_regular_file
from harness.model.schedule import MalformedLabelError
from harness.points import well_formed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harness.model.schedule import Schedule

_FUNCTION = "crash_point"
_FILES_KEPT = 1024


@dataclass(frozen=True, slots=True, order=True)
class DeclaredPoint:
    """A crash point as it stands in the source.

    Attributes:
        label: Its label.
        file: Path of the file, relative to the directory that holds the package.
        line: Line of the call, from 1.
        context: Names of the context that it gives.
        more_context: Whether it gives other context too, which the source does not name.
    """

    label: str
    file: str
    line: int
    context: tuple[str, ...] = ()
    more_context: bool = False

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
            if first is not point:
                raise UsageError(
                    f"crash point {point.label!r} is declared twice: "
                    f"{first.source} and {point.source}; a label names one place: give one of "
                    "them another label, or call one function that has the point"
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

    def check(self, schedule: Schedule) -> None:
        """See that every moment of a schedule can be reached: its label, and its context key.

        Args:
            schedule: The schedule.

        Raises:
            UnknownNameError: One cannot; the message has the nearest label or key.
        """
        for moment in schedule.moments:
            point = self[moment.label]
            if moment.key and moment.key not in point.context and not point.more_context:
                raise UnknownNameError(f"context key of {moment.label}", moment.key, point.context)

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
        UsageError: A name cannot be found, a file is not Python, a label is not a literal, is not
            well formed, or is declared twice.
    """
    files: dict[Path, str] = {}
    for name in names:
        base, below = _files(name)
        files.update((file, file.relative_to(base).as_posix()) for file in below)
    return Catalogue(
        point
        for file, shown in files.items()
        for point in _declared(shown, read_regular_file(file, "module"))
    )


def files_of(name: str) -> list[Path]:
    """Return the files of a package or module.

    Args:
        name: Its import name.

    Raises:
        UsageError: It cannot be found.
    """
    return _files(name)[1]


def _files(name: str) -> tuple[Path, list[Path]]:
    """Return the folder that holds a package, and the files of a package or module in it."""
    top, *rest = name.split(".")
    unknown = UsageError(f"no package or module {name!r} to read crash points from")
    try:
        # Only the top is looked up: finding a module in a package would import the package.
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError) as error:
        raise unknown from error
    places = [Path(place) for place in (spec and spec.submodule_search_locations) or ()]
    if not places and spec is not None and spec.has_location and not rest:
        origin = Path(spec.origin or "")
        if origin.suffix == ".py":
            return origin.parent, [origin]
    for place in places:
        target = place.joinpath(*rest)
        if target.is_dir():
            return place.parent, sorted(f for f in target.rglob("*.py") if not f.is_dir())
        if rest and target.with_suffix(".py").is_file():
            return place.parent, [target.with_suffix(".py")]
    raise unknown


@lru_cache(_FILES_KEPT)
def _declared(shown: str, source: bytes) -> tuple[DeclaredPoint, ...]:
    """Return the points of a file; one is parsed once, though many scenarios name it."""
    if _FUNCTION.encode() not in source:
        return ()
    try:
        # From bytes, so that Python's own rules for the encoding hold.
        tree = ast.parse(source, filename=shown)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else 1
        raise UsageError(f"{shown}:{line}: not Python: {error}") from error
    names = {_FUNCTION}
    calls = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {a.asname for a in node.names if a.name == _FUNCTION and a.asname}
        elif isinstance(node, ast.Call):
            calls.append(node)
    return tuple(_point(call, shown) for call in calls if _called(call.func) in names)


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
        raise MalformedLabelError(label.value, place=f"{where}: ")
    context = tuple(keyword.arg for keyword in call.keywords if keyword.arg)
    more = len(context) < len(call.keywords)  # **context
    return DeclaredPoint(label.value, shown, call.lineno, context, more)
