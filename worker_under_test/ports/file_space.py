"""Where artifacts are made and published (FIL-04, FIL-08)."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from worker_under_test.domain.artifact import ArtifactSet


class Place(enum.StrEnum):
    """Where a file of a set stands."""

    TEMPORARY = "temporary"
    FINAL = "final"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of a set, as it is on disk.

    Attributes:
        name: Name of the part.
        place: Temporary or final.
        size: Its size in bytes.
        sha256: Its checksum, in hexadecimal.
    """

    name: str
    place: Place
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Leftover:
    """A temporary file, whoever left it.

    Attributes:
        command_id: The command whose directory it stands in.
        file_name: Its name there.
    """

    command_id: str
    file_name: str


class FileSpace(Protocol):
    """Files of the worker. Each method is one operation; names have been checked."""

    async def find(self, files: ArtifactSet) -> list[FoundFile]:
        """Look at what is on disk of a set, and measure it.

        Args:
            files: The set.

        Returns:
            Final and temporary files, sorted by name and place; empty if there is nothing.
        """

    async def write_temp(self, files: ArtifactSet, name: str, data: bytes) -> None:
        """Write a part whole to its temporary path and force it to disk.

        Args:
            files: The set.
            name: Name of the part.
            data: Its content.
        """

    async def extend_temp(self, files: ArtifactSet, name: str, offset: int, data: bytes) -> None:
        """Write a piece of a part at its temporary path, cut off what lies behind, and sync.

        Args:
            files: The set.
            name: Name of the part.
            offset: Where the piece begins; 0 makes the part anew.
            data: The piece.
        """

    async def read_temp(self, files: ArtifactSet, name: str, offset: int, size: int) -> bytes:
        """Read a piece of what stands at a part's temporary path.

        Args:
            files: The set.
            name: Name of the part.
            offset: Where the piece begins.
            size: How long it is.

        Returns:
            As much of it as there is; nothing, if there is no such file.
        """

    async def keep_temp(self, files: ArtifactSet, name: str) -> None:
        """Force a part to disk that an earlier life left at its temporary path.

        Args:
            files: The set.
            name: Name of the part, verified by the caller.
        """

    async def publish(self, files: ArtifactSet, names: list[str]) -> None:
        """Rename parts to their final paths, remove other temporary files of the set, sync.

        Args:
            files: The set.
            names: The parts that stand complete at their temporary paths.
        """

    async def leftovers(self) -> list[Leftover]:
        """Look for temporary files of any set, sorted by command and name (CLN-01)."""

    async def remove(self, leftover: Leftover) -> None:
        """Remove a temporary file; does nothing if it is gone (CLN-03).

        Args:
            leftover: What `leftovers` found.
        """

    async def discard(self, files: ArtifactSet) -> None:
        """Remove everything of a set that failed; nothing half done stays (FIL-09).

        Args:
            files: The set.
        """
