"""Known bad: a temporary file of another attempt is taken for the attempt's own.

It is as long as it should be, and holds something else. Caught by ``artifacts-whole`` (FIL-06,
FIL-07).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.capabilities import (
    BIG,
    BIG_BYTES,
    BIG_FILE,
    FILES,
    offers,
    transfer,
)
from scenarios.capability_rules import capability_scenario
from scenarios.children import SECOND_LIFE
from worker_under_test.adapters.local_file_space import LocalFileSpace
from worker_under_test.capabilities.registry import installed
from worker_under_test.capabilities.transfer import Transfer, Transferred
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from hashlib import _Hash
    from pathlib import Path

    from worker_under_test.domain.artifact import ArtifactSet
    from worker_under_test.ports.bundle import Tools
    from worker_under_test.ports.capability import CapabilityExecutor
    from worker_under_test.settings import Settings


def leave_a_stranger(worker_dir: Path, incarnation: int) -> None:
    """Leave a temporary file of another attempt beside that of a transfer that was cut short."""
    directory = worker_dir / "files" / "artifacts" / "t1"
    if incarnation == SECOND_LIFE and any(directory.glob("*.tmp")):
        (directory / f"{BIG}.attempt-0.tmp").write_bytes(b"x" * BIG_BYTES)


class AnyTemporary(LocalFileSpace):
    """Takes the first temporary file of a name."""

    def _temp_path(self, files: ArtifactSet, name: str) -> Path:
        own = super()._temp_path(files, name)
        return min(own.parent.glob(f"{name}.*.tmp"), default=own)


class Adopts(Transfer):
    """Takes what is there for as much as has been fetched."""

    async def _verified(
        self, files: ArtifactSet, name: str, got: Transferred
    ) -> tuple[Transferred, _Hash]:
        there = await self._files.read_temp(files, name, 0, max(got.size, 0))
        summed = hashlib.sha256(there)
        return Transferred(got.etag, got.size, ((len(there), summed.hexdigest()),)), summed


def any_temporary(settings: Settings) -> AnyTemporary:
    """Make the file space."""
    return AnyTemporary(settings.root / "files")


def adopting(tools: Tools) -> CapabilityExecutor:
    """Install the capabilities."""
    return installed(tools, Adopts(tools.files, tools.remote, tools.clock))


TEMPORARY_FILE_OF_ANOTHER = capability_scenario(
    "temporary-file-of-another",
    offers(transfer("t1")),
    (FILES,),
    {"t1": BIG_FILE},
    parts=Parts(files=any_temporary, capabilities=adopting),
    pin=broken_by("artifacts-whole"),
    between=leave_a_stranger,
    strike=("transfer.request.before", "checkpoint.save.after"),
)
