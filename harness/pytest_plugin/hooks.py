"""The pytest plugin: ``pytest scenarios/`` collects the matrix, one test item per experiment.

Everything that costs time to import is imported when the first scenario is collected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.pytest_plugin.settings import FOLDER_INI, OUT_INI

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from harness.pytest_plugin.items import ScenarioFile


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and the ini setting."""
    group = parser.getgroup("crash-harness", "crash injection")
    group.addoption("--crash-tier", default="smoke", help="smoke (default), full or deep")
    group.addoption(
        "--crash-out", metavar="DIR", help="directory of all records, relative to the root; or none"
    )
    group.addoption("--crash-seed", type=int, default=0, help="source of everything random")
    parser.addini(FOLDER_INI, "folder with scenarios, relative to the root", default="scenarios")
    parser.addini(OUT_INI, "directory of all records, relative to the root", default="reports/runs")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    """Collect a Python file of the scenario folder."""
    folder = parent.config.rootpath / parent.config.getini(FOLDER_INI)
    if file_path.suffix != ".py" or folder not in file_path.parents:
        return None
    from harness.pytest_plugin.items import ScenarioFile  # noqa: PLC0415 - see the module's docstring

    return ScenarioFile.from_parent(parent, path=file_path)
