"""Known bad: an archive is unpacked at its final path.

A worker that is killed in between has published a part of a tree. Caught by ``trees-whole``
(ZIP-03).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.capabilities import FILES, PUBLISHED_TREE, offers, unpack
from scenarios.capability_rules import capability_scenario
from worker_under_test.adapters.local_tree_space import LocalTreeSpace
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from pathlib import Path

    from worker_under_test.domain.artifact import ArtifactSet
    from worker_under_test.settings import Settings


class InPlace(LocalTreeSpace):
    """Has no temporary tree."""

    def _temp_path(self, files: ArtifactSet) -> Path:
        return self._final_path(files)

    def _publish(self, files: ArtifactSet) -> None:
        """Do nothing: it is there already."""


def in_place(settings: Settings) -> InPlace:
    """Make the tree space."""
    return InPlace(settings.root / "files", settings.root / "inputs")


PARTIAL_TREE_PUBLISHED = capability_scenario(
    "partial-tree-published",
    offers(unpack("u1")),
    (FILES,),
    {"u1": PUBLISHED_TREE},
    parts=Parts(trees=in_place),
    pin=broken_by("trees-whole"),
    strike=("unpack.entry.after", "tree.rename.before"),
)
