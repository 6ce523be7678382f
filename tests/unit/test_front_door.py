"""The front door: what `from harness import ...` gives, and what it costs."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import harness

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(harness.__file__).parent.parent
API = ROOT / "docs" / "api.md"


def _loaded_by(code: str) -> list[str]:
    """Return the modules that code loads in an interpreter that has loaded as little as possible.

    Nothing of this environment can be imported there but the package.
    """
    program = (
        f"import os, sys; sys.path.insert(0, {str(ROOT)!r}); before = set(sys.modules)\n"
        f"{code}\nprint(*sorted(set(sys.modules) - before - {{'__future__'}}))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return done.stdout.split()


def _typed() -> Iterator[tuple[str, str]]:
    """Give the name and the home of everything that type checkers see in the package."""
    source = Path(harness.__file__).read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.If):
            for statement in node.body:
                if isinstance(statement, ast.ImportFrom):
                    for alias in statement.names:
                        yield alias.asname or alias.name, f"{statement.module}.{alias.name}"


def test_types_and_values_are_the_same() -> None:
    """What type checkers see, what is loaded, and what is listed cannot differ."""
    assert dict(_typed()) == harness._HOMES
    assert sorted(harness._HOMES) == harness.__all__


@pytest.mark.parametrize("name", harness.__all__)
def test_every_name_is_there_and_says_what_it_is(name: str) -> None:
    """A name in ``__all__`` that cannot be loaded would break ``from harness import *``."""
    value = getattr(harness, name)
    assert value is getattr(harness, name)
    assert inspect.getdoc(value)
    assert name in dir(harness)


def test_unknown_name_is_answered_with_the_nearest() -> None:
    """A misspelt name is an AttributeError, as for any module, and helps."""
    with pytest.raises(AttributeError, match=r"'Scenari'.*did you mean 'Scenario'"):
        _ = harness.Scenari  # type: ignore[attr-defined] # what is tried
    assert not hasattr(harness, "Scenari")


def test_importing_the_package_loads_nothing() -> None:
    """Production code imports `harness.points`, and so this package: both must cost nothing."""
    assert _loaded_by("import harness") == ["harness"]


@pytest.mark.parametrize("line", ["from harness import crash_point", "from harness import points"])
def test_crash_points_load_their_own_module_alone(line: str) -> None:
    """However production code gets at the points, no dependency and nothing else is loaded."""
    assert _loaded_by(line) == ["harness", "harness.points"]


def test_scenario_is_said_without_a_dependency() -> None:
    """A scenario file can be imported where the extra ``runner`` is not installed."""
    names = "Scenario, Site, Command, Workload, EffectLedger, NoEffectTwice, broken_by, Finding"
    assert "harness.scenario" in _loaded_by(f"from harness import {names}")


def test_api_page_lists_every_name() -> None:
    """docs/api.md: a line for every name, and no line for what is not there."""
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", API.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(name for name, _ in rows) == harness.__all__
    assert all(sentence.strip() for _, sentence in rows)
