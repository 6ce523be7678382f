"""Where scenarios come from: module attributes that are scenarios, in a folder or a file."""

from __future__ import annotations

import ast
import importlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.model.errors import UnknownNameError, UsageError
from harness.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import ModuleType

DEFAULT = "scenarios"


def load(source: str | Path = DEFAULT) -> dict[str, Scenario]:
    """Import the modules of a folder, or one file, and collect the scenarios in them.

    A scenario is assigned at the top of a module, alone or in a tuple. A folder is searched
    through and through. Modules are imported under the name that Python itself would use: from the
    first folder above that has no ``__init__.py``.

    Args:
        source: Path of a folder or of a Python file.

    Returns:
        The scenarios by name, sorted.

    Raises:
        UsageError: There is no such path, a module cannot be imported, no scenario is found, or
            two have one name.
    """
    try:
        path = Path(source).resolve()
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        known = path.is_dir() or (path.suffix == ".py" and path.is_file())
    except (OSError, RuntimeError) as error:  # unreadable, or a link to itself
        raise UsageError(f"no scenarios at {str(source)!r}: {error}") from None
    if not known:
        raise UsageError(
            f"no scenarios at {str(source)!r}: give a folder or a Python file with --scenarios"
        )
    found: dict[str, Scenario] = {}
    for file in files:
        for scenario in scenarios_in(file):
            if found.setdefault(scenario.name, scenario) is not scenario:
                raise UsageError(f"two scenarios are named {scenario.name!r}; one is in {file}")
    if not found:
        raise UsageError(f"no module at {str(source)!r} has a Scenario")
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


def import_file(file: Path) -> ModuleType:
    """Import a Python file under its natural name.

    Raises:
        UsageError: It cannot be imported, or its name is that of another module.
    """
    file = file.resolve()
    parts = [] if file.stem == "__init__" else [file.stem]
    folder = file.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    name = ".".join(parts)
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise UsageError(f"{file} cannot be imported: {type(error).__name__}: {error}") from error
    if Path(module.__file__ or "").resolve() != file:
        raise UsageError(
            f"{file} would be imported as {name!r}, and that is {module.__file__ or 'built in'}; "
            "rename it, or make its folder a package"
        )
    return module


def scenarios_in(file: Path) -> Iterator[Scenario]:
    """Import a file and give the scenarios that it assigns; those that it imports are others'.

    Raises:
        UsageError: It cannot be imported.
    """
    module = import_file(file)
    for name in _assigned(file):
        value = getattr(module, name, None)
        for scenario in value if isinstance(value, tuple) else (value,):
            if isinstance(scenario, Scenario):
                yield scenario


def _assigned(file: Path) -> Iterator[str]:
    for statement in ast.parse(file.read_text(encoding="utf-8")).body:
        match statement:
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name


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
    known = {oracle.name for scenario in given for oracle in scenario.oracles}
    for name in wanted:
        if name not in known:
            raise UnknownNameError("oracle", name, known)
    return tuple(
        replace(scenario, oracles=kept)
        for scenario in given
        if (kept := tuple(o for o in scenario.oracles if o.name in wanted))
        and scenario.pin.oracle in ("", *wanted)
    )
