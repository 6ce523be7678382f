"""The oldest versions that the package allows are the ones that ``tox -e lowest`` tries."""

from __future__ import annotations

import configparser
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]

TOOLS = ("mypy", "ruff", "types-")
"""What checks the source, and is no part of a run of the tests."""


def test_every_lower_bound_is_tried() -> None:
    """CONTRIBUTING: a lower bound that nobody tried says nothing."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    bounds = {bound for extra in ("runner", "postgres", "dev") for bound in extras[extra]}
    tox = configparser.ConfigParser()
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    tried = tox["testenv:lowest"]["deps"].split()
    assert sorted(tried) == sorted(
        bound.replace(">=", "==") for bound in bounds if not bound.startswith(TOOLS)
    )
    assert project["dependencies"] == []
