"""Known bad (M-24): an artifact is written at its final path.

A worker that is killed in the middle of a write leaves half a file where a whole one is expected.
Caught by ``artifacts-whole`` on the crash image, though recovery writes the file again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.reference import variant
from worker_under_test.adapters.local_file_space import LocalFileSpace
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from pathlib import Path

    from worker_under_test.domain.artifact import ArtifactSet
    from worker_under_test.settings import Settings


class InPlace(LocalFileSpace):
    """Has no temporary paths."""

    def _temp_path(self, files: ArtifactSet, name: str) -> Path:
        return self._final_path(files, name)


def in_place(settings: Settings) -> InPlace:
    """Make the file space."""
    return InPlace(settings.root / "files")


WRITTEN_IN_PLACE = variant(
    "written-in-place",
    Parts(files=in_place),
    broken_by("artifacts-whole"),
    strike=(
        "artifact.write.before",
        "artifact.write.mid",
        "artifact.write.after",
    ),
)
