"""Scenario files: the scenarios that modules of a folder, or one file, assign at their top."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.explore.module_import import import_file
from harness.model.errors import UnknownNameError, UsageError
from harness.model.regular_file import read_regular_file, shown_path
from harness.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DEFAULT = "scenarios"

_SHOWN = 8
"""How many names a message says that were looked at."""


def load(source: str | Path = DEFAULT) -> dict[str, Scenario]:
    """Import the modules of a folder, or one file, and collect the scenarios in them.

    A scenario is assigned at the top of a module, alone or in a collection: a list, a tuple, a set,
    the values of a dict. A folder is searched with all its subfolders. Modules are imported under
    the name that Python itself would use: from the first folder above that has no ``__init__.py``.

    Args:
        source: Path of a folder or of a Python file.

    Returns:
        The scenarios by name, sorted.

    Raises:
        UsageError: There is no such path, a module cannot be imported, no scenario is found, or
            two have one name.
    """
    shown = shown_path(source)
    try:
        path = Path(source).resolve()
        folder = path.is_dir()
        files = sorted(f for f in path.rglob("*.py") if not f.is_dir()) if folder else [path]
        known = folder or (path.suffix == ".py" and path.is_file())
    except (OSError, RuntimeError, ValueError) as error:  # unreadable, a link to itself, no path
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"no scenarios at {shown!r}: {reason}") from None
    if not known:
        raise UsageError(
            f"no scenarios at {shown!r}: give a folder or a Python file with --scenarios"
        )
    found: dict[str, Scenario] = {}
    for file in files:
        for scenario in scenarios_in(file):
            if found.setdefault(scenario.name, scenario) is not scenario:
                raise UsageError(f"two scenarios are named {scenario.name!r}; one is in {file}")
    if not found:
        raise UsageError(
            f"no scenario at {shown!r}: {_looked_at(files)}; assign a Scenario at the top of"
            " a module, alone or in a list, tuple, set or dict"
        )
    return dict(sorted(found.items()))


def select(known: Mapping[str, Scenario], names: Iterable[str]) -> tuple[Scenario, ...]:
    """Return the named scenarios, or all when no name is given.

    Raises:
        UnknownNameError: A name is not known.
    """
    wanted = dict.fromkeys(names)
    for name in wanted:
        if name not in known:
            raise UnknownNameError("scenario", name, known)
    return tuple(known[name] for name in wanted or known)


def scenarios_in(file: Path) -> Iterator[Scenario]:
    """Import a file and give the scenarios that it assigns, not those that it imports.

    Raises:
        UsageError: It cannot be imported, or what it assigns cannot be looked at.
    """
    try:
        items = [item for value in _values(file).values() for item in _items(value)]
    except UsageError:
        raise
    except Exception as error:  # a value of the user, whose methods may raise anything
        raise UsageError(
            f"{file}: what it assigns cannot be looked at: {type(error).__name__}: {error}"
        ) from error
    for scenario in items:
        if isinstance(scenario, Scenario):
            yield scenario


def _items(value: object) -> Collection[object]:
    """Return what a value holds; iterators are left alone, since reading one would use it up."""
    if isinstance(value, Mapping):
        return tuple(value.values())
    if isinstance(value, Collection) and not isinstance(value, str | bytes):
        return value
    return (value,)


def _values(file: Path) -> dict[str, object]:
    """Import a file; return what it assigns at its top, by name."""
    module = import_file(file)
    source = read_regular_file(file, "scenario file")
    names = dict.fromkeys(_assigned(ast.parse(source).body))
    return {name: getattr(module, name) for name in names if hasattr(module, name)}


def _assigned(statements: Iterable[ast.stmt]) -> Iterator[str]:
    """Give the names that statements assign, those under ``if``, ``with`` and the like too."""
    for statement in statements:
        match statement:
            case ast.Assign(targets=targets):
                yield from (name for target in targets for name in _names(target))
            case ast.AnnAssign(target=target):
                yield from _names(target)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                pass
            case _:
                for block in ("body", "orelse", "finalbody"):
                    yield from _assigned(getattr(statement, block, ()))
                for handler in getattr(statement, "handlers", ()):
                    yield from _assigned(handler.body)


def _names(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Starred(value=inner):
            yield from _names(inner)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            yield from (name for element in elements for name in _names(element))


def _looked_at(files: list[Path]) -> str:
    """Say where no scenario was found: in these modules, or under the names of the only one."""
    if len(files) != 1:
        return f"{len(files)} modules assign none"
    shown = [f"{name} ({type(value).__name__})" for name, value in _values(files[0]).items()]
    if not shown:
        return f"{files[0].name} assigns nothing"
    more = [f"{len(shown) - _SHOWN} more"] if len(shown) > _SHOWN else []
    return f"{files[0].name} assigns {', '.join(shown[:_SHOWN] + more)}"


def groups(known: Mapping[str, Scenario]) -> dict[str, frozenset[str]]:
    """Return the names of the scenarios of each group (`Scenario.together`)."""
    found: dict[str, frozenset[str]] = {}
    for name, scenario in known.items():
        if scenario.together:
            found[scenario.together] = found.get(scenario.together, frozenset()) | {name}
    return found


def judged_by(scenarios: Iterable[Scenario], oracles: Iterable[str]) -> tuple[Scenario, ...]:
    """Return the scenarios that have one of the named oracles, with those oracles alone.

    A scenario that is pinned broken by another oracle is left out.

    Args:
        scenarios: The scenarios.
        oracles: Names of oracles; none means that nothing is changed.

    Raises:
        UnknownNameError: No scenario has an oracle of that name.
    """
    given = tuple(scenarios)
    wanted = tuple(dict.fromkeys(oracles))
    if not wanted:
        return given
    known = {oracle.name for scenario in given for oracle in scenario.judges}
    for name in wanted:
        if name not in known:
            raise UnknownNameError("oracle", name, known)
    return tuple(
        replace(scenario, oracles=kept)
        for scenario in given
        if (kept := tuple(o for o in scenario.judges if o.name in wanted))
        and scenario.pin.oracle in ("", *wanted)
    )
