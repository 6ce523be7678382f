"""Where whole trees of files are made and published: all or nothing (ZIP-03)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from worker_under_test.domain.artifact import ArtifactSet

TREE = "tree"
"""Name of the tree in the directory of its set."""


class TreeSpace(Protocol):
    """One tree for each set. Paths are relative, use ``/``, and have been checked."""

    async def read_input(self, name: str, most: int) -> bytes | None:
        """Read a file that was put there for the worker.

        Args:
            name: Its name, checked.
            most: Most bytes that are read.

        Returns:
            Its content, as far as it may be read, or None if there is no such file.
        """

    async def begin(self, files: ArtifactSet) -> None:
        """Make an empty tree at the temporary path; what an earlier life left there goes (ZIP-07).

        Args:
            files: The set.
        """

    async def add(self, files: ArtifactSet, path: str, data: bytes | None) -> None:
        """Add a file to the temporary tree and force it to disk.

        Args:
            files: The set.
            path: Where in the tree.
            data: Its content; None for a directory.
        """

    async def publish(self, files: ArtifactSet) -> None:
        """Rename the temporary tree to its final path, and sync.

        Args:
            files: The set.
        """

    async def find(self, files: ArtifactSet) -> dict[str, str] | None:
        """Measure the published tree.

        Args:
            files: The set.

        Returns:
            The checksum of each file, and an empty text for each directory, by path; None if there
            is no tree.
        """

    async def discard(self, files: ArtifactSet) -> None:
        """Remove everything of a set (ZIP-04).

        Args:
            files: The set.
        """
