"""Known bad (M-26): a clean-up removes temporary files whatever their attempt is at.

A part that was whole when the worker was killed is thrown away, and has to be made again. Caught
by ``whole-parts-kept`` (CLN-01): a restart writes again what the crash image already held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.reference import variant
from worker_under_test.adapters.local_file_space import LocalFileSpace
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from worker_under_test.domain.artifact import ArtifactSet
    from worker_under_test.ports.file_space import FoundFile
    from worker_under_test.settings import Settings


class SweptAtStart(LocalFileSpace):
    """Removes every temporary file before the first look of a life: nothing of it is running."""

    _swept = False

    async def find(self, files: ArtifactSet) -> list[FoundFile]:
        """Sweep once; then look."""
        if not self._swept:
            self._swept = True
            for leftover in await self.leftovers():
                await self.remove(leftover)
        return await super().find(files)


def swept(settings: Settings) -> SweptAtStart:
    """Make the file space."""
    return SweptAtStart(settings.root / "files")


CLEAN_UP_OF_LIVE_FILES = variant(
    "clean-up-of-live-files",
    Parts(files=swept),
    broken_by("whole-parts-kept"),
    strike=(
        "artifact.write.after",
        "artifact.sync.after",
        "artifact.rename.before",
        "artifact.rename.mid",
    ),
)
