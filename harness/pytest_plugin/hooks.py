"""The pytest plugin: ``pytest scenarios/`` collects the matrix, one test item per experiment.

Everything that costs time to import is imported when the first scenario is collected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from harness.pytest_plugin.settings import FOLDER_INI, NOTES, OUT_INI, OUTPUT_KEY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from harness.pytest_plugin.by_scenario import ByScenario
    from harness.pytest_plugin.items import ScenarioFile


class _Process(Protocol):
    """A process of pytest-xdist, as the one that started it sees it."""

    config: pytest.Config


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and the ini settings."""
    group = parser.getgroup("crash-harness", "crash injection")
    group.addoption("--crash-tier", default="smoke", help="smoke (default), full or deep")
    group.addoption(
        "--crash-out",
        metavar="DIR",
        help="directory of all records, relative to the root, or none; write --crash-out=DIR",
    )
    group.addoption("--crash-seed", type=int, default=0, help="source of everything random")
    parser.addini(FOLDER_INI, "folder with scenarios, relative to the root", default="scenarios")
    parser.addini(OUT_INI, "directory of all records, relative to the root", default="reports/runs")


def pytest_configure(config: pytest.Config) -> None:
    """Begin with nothing to tell."""
    config.stash[NOTES] = []


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    """Collect a Python file of the scenario folder."""
    folder = parent.config.rootpath / parent.config.getini(FOLDER_INI)
    if file_path.suffix != ".py" or folder not in file_path.parents:
        return None
    from harness.pytest_plugin.items import ScenarioFile  # noqa: PLC0415 - see the module's docstring

    return ScenarioFile.from_parent(parent, path=file_path)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say where the records are, and what could not be written."""
    for note in config.stash[NOTES]:
        terminalreporter.write_line(f"crash-harness: {note}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByScenario | None:
    """Keep the items of a scenario together where pytest-xdist would hand out single items."""
    folder = config.rootpath / config.getini(FOLDER_INI)
    if config.getoption("dist") != "load" or not folder.is_dir():
        return None
    from harness.pytest_plugin.by_scenario import ByScenario  # noqa: PLC0415 - see the module's docstring

    return ByScenario(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: _Process) -> None:
    """Take over what a process of pytest-xdist has to tell; it has no terminal."""
    # One that died has sent nothing.
    output: Mapping[str, Sequence[str]] = getattr(node, "workeroutput", {})
    node.config.stash[NOTES].extend(output.get(OUTPUT_KEY, ()))
