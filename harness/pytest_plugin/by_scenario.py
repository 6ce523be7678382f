"""How pytest-xdist hands out the items of scenarios: those of one scenario to one process.

They share its control leg and its exploration, which a second process would have to run again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdist.scheduler import LoadScopeScheduling

from harness.pytest_plugin.settings import FOLDER_INI

if TYPE_CHECKING:
    import pytest


class ByScenario(LoadScopeScheduling):  # type: ignore[misc]  # it comes without types
    """Hands out the items of a scenario together, and every other test by itself.

    Args:
        config: Pytest's configuration.
        log: Where pytest-xdist writes its log.
    """

    def __init__(self, config: pytest.Config, log: object) -> None:
        super().__init__(config, log)
        self._folder = f"{config.getini(FOLDER_INI)}/".removeprefix("./")

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid, self._folder)


def scope_of(node_id: str, folder: str) -> str:
    """Return what an item is handed out with.

    Args:
        node_id: The item's.
        folder: The folder of scenarios, relative to the root, with a slash at its end.

    Returns:
        For an item of a scenario the file and the scenario's name, for any other the item itself.
    """
    file, _, item = node_id.partition("::")
    if not file.startswith(folder) or not item.endswith("]"):
        return node_id
    return f"{file}::{item.partition('[')[0]}"
