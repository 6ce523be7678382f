"""Trees of files on the local file system, published by one rename."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.adapters.places import (
    is_directory,
    is_file,
    make_directory,
    open_file,
    remove,
    sync,
)
from worker_under_test.ports.tree_space import TREE

if TYPE_CHECKING:
    from worker_under_test.domain.artifact import ArtifactSet


NO_FILE = "neither a file nor a directory"
"""Stands for the checksum of what has none; equal to no checksum."""


class LocalTreeSpace:
    """A `TreeSpace` under one directory.

    Args:
        root: Directory of the sets, the one of `LocalFileSpace`.
        inputs: Directory of the files that were put there for the worker.
    """

    def __init__(self, root: Path, inputs: Path) -> None:
        self._root = root
        self._inputs = inputs

    def _final_path(self, files: ArtifactSet) -> Path:
        return self._root / files.directory / TREE

    def _temp_path(self, files: ArtifactSet) -> Path:
        return self._root / files.directory / files.temporary_name(TREE)

    async def read_input(self, name: str, most: int) -> bytes | None:
        """Read a file; one byte more than may be, so that the caller sees that there is more."""
        return await asyncio.to_thread(_read, self._inputs / name, most + 1)

    async def begin(self, files: ArtifactSet) -> None:
        """Make an empty tree."""
        await asyncio.to_thread(_make_empty, self._temp_path(files))
        crash_point("tree.create.after", command=files.command_id)

    async def add(self, files: ArtifactSet, path: str, data: bytes | None) -> None:
        """Add a file or a directory."""
        await asyncio.to_thread(_add, self._temp_path(files) / path, data)

    async def publish(self, files: ArtifactSet) -> None:
        """Force every directory to disk, rename, and force the parents to disk."""
        crash_point("tree.rename.before", command=files.command_id)
        await asyncio.to_thread(self._publish, files)
        crash_point("tree.rename.after", command=files.command_id)
        await asyncio.to_thread(self._sync_parents, files)

    def _publish(self, files: ArtifactSet) -> None:
        temporary, final = self._temp_path(files), self._final_path(files)
        for directory, _, _ in os.walk(temporary):
            sync(Path(directory))
        remove(final)  # What stands there is not what it should be: the caller compared it.
        temporary.rename(final)

    def _sync_parents(self, files: ArtifactSet) -> None:
        directory = self._root / files.directory
        while directory != self._root.parent:
            sync(directory)
            directory = directory.parent
        sync(directory)

    async def find(self, files: ArtifactSet) -> dict[str, str] | None:
        """Measure the published tree."""
        return await asyncio.to_thread(_measure, self._final_path(files))

    async def discard(self, files: ArtifactSet) -> None:
        """Remove the set's directory with all that is in it."""
        await asyncio.to_thread(remove, self._root / files.directory)


def _read(path: Path, most: int) -> bytes | None:
    # Whoever put it there may have used a link; a pipe or a device is no input.
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return file.read(most)


def _make_empty(path: Path) -> None:
    make_directory(path.parent)
    remove(path)
    path.mkdir()


def _add(path: Path, data: bytes | None) -> None:
    if data is None:
        make_directory(path)
        return
    with open(open_file(path, os.O_EXCL), "wb") as file:  # noqa: PTH123 - flags of its own
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _measure(root: Path) -> dict[str, str] | None:
    if not is_directory(root.parent) or not is_directory(root):
        return None
    return {path.relative_to(root).as_posix(): _sum(path) for path in sorted(root.rglob("*"))}


def _sum(path: Path) -> str:
    if is_directory(path):
        return ""
    return hashlib.sha256(path.read_bytes()).hexdigest() if is_file(path) else NO_FILE
