"""Artifacts on the local file system: temporary path, sync, rename, sync (FIL-03, FIL-04)."""

from __future__ import annotations

import asyncio
import hashlib
import os
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from harness.points import crash_point
from worker_under_test.adapters.places import is_directory, is_file, open_file, remove, sync
from worker_under_test.domain.artifact import ARTIFACTS, TEMPORARY_SUFFIX
from worker_under_test.ports.file_space import FoundFile, Leftover, Place

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from worker_under_test.domain.artifact import ArtifactSet

P = ParamSpec("P")
T = TypeVar("T")


class LocalFileSpace:
    """A `FileSpace` under one directory.

    A file is at its final path only when it is whole and on disk. What stands in the place of a
    file and is none is not read, and goes when the file is made (`adapters.places`). Blocking calls
    run in a thread; the crash points stand between them, in the caller's task.

    Args:
        root: The directory; made when the first file is.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def _final_path(self, files: ArtifactSet, name: str) -> Path:
        return self._root / files.directory / name

    def _temp_path(self, files: ArtifactSet, name: str) -> Path:
        return self._root / files.directory / files.temporary_name(name)

    async def find(self, files: ArtifactSet) -> list[FoundFile]:
        """Measure what is on disk of a set; the name says where a file stands, its sum what."""
        return await _in_thread(self._find, files)

    def _find(self, files: ArtifactSet) -> list[FoundFile]:
        directory = self._root / files.directory
        suffix = files.temporary_name("")
        found = []
        for path in sorted(directory.iterdir()) if is_directory(directory) else ():
            if not is_file(path):
                continue
            data = path.read_bytes()
            place = Place.TEMPORARY if path.name.endswith(suffix) else Place.FINAL
            name = path.name.removesuffix(suffix)
            found.append(FoundFile(name, place, len(data), hashlib.sha256(data).hexdigest()))
        return found

    async def write_temp(self, files: ArtifactSet, name: str, data: bytes) -> None:
        """Write a part whole to its temporary path and force it to disk."""
        about = {"command": files.command_id, "part": name}
        path = self._temp_path(files, name)
        half = len(data) // 2
        crash_point("artifact.write.before", **about)
        descriptor = await _in_thread(open_file, path, os.O_TRUNC)
        try:
            crash_point("artifact.create.after", **about)
            await _in_thread(_write, descriptor, data[:half])
            crash_point("artifact.write.mid", **about)
            await _in_thread(_write, descriptor, data[half:])
            crash_point("artifact.write.after", **about)
            await _in_thread(os.fsync, descriptor)
            crash_point("artifact.sync.after", **about)
        finally:
            os.close(descriptor)

    async def extend_temp(self, files: ArtifactSet, name: str, offset: int, data: bytes) -> None:
        """Write a piece at an offset, cut off what lies behind it, and force it to disk."""
        about = {"command": files.command_id, "part": name}
        half = len(data) // 2
        descriptor = await _in_thread(_open_at, self._temp_path(files, name), offset)
        try:
            crash_point("artifact.extend.before", **about)
            await _in_thread(_write, descriptor, data[:half])
            crash_point("artifact.extend.mid", **about)
            await _in_thread(_write, descriptor, data[half:])
            crash_point("artifact.extend.after", **about)
            await _in_thread(os.fsync, descriptor)
        finally:
            os.close(descriptor)

    async def read_temp(self, files: ArtifactSet, name: str, offset: int, size: int) -> bytes:
        """Read a piece; nothing, if there is no such file."""
        return await _in_thread(_read_at, self._temp_path(files, name), offset, size)

    async def keep_temp(self, files: ArtifactSet, name: str) -> None:
        """Force a part to disk that an earlier life wrote, perhaps without the sync."""
        await _in_thread(sync, self._temp_path(files, name))

    async def publish(self, files: ArtifactSet, names: list[str]) -> None:
        """Rename the parts, remove what else is temporary, and force the directories to disk."""
        about = {"command": files.command_id}
        crash_point("artifact.rename.before", **about)
        for index, name in enumerate(names):
            if index:
                crash_point("artifact.rename.mid", **about, part=name)
            await _in_thread(_replace, self._temp_path(files, name), self._final_path(files, name))
        await _in_thread(self._remove_temps, files)
        crash_point("artifact.rename.after", **about)
        await _in_thread(self._sync_directories, files)
        crash_point("directory.sync.after", **about)

    async def leftovers(self) -> list[Leftover]:
        """Look for temporary files of any set."""
        return await _in_thread(self._leftovers)

    async def remove(self, leftover: Leftover) -> None:
        """Remove a temporary file."""
        path = self._root / ARTIFACTS / leftover.command_id / leftover.file_name
        await _in_thread(_remove_from_set, path)

    def _leftovers(self) -> list[Leftover]:
        found = sorted((self._root / ARTIFACTS).glob(f"*/*{TEMPORARY_SUFFIX}"))
        return [Leftover(p.parent.name, p.name) for p in found if is_directory(p.parent)]

    async def discard(self, files: ArtifactSet) -> None:
        """Remove everything of a set that failed."""
        await _in_thread(self._remove_all, files)

    def _remove_temps(self, files: ArtifactSet) -> None:
        directory = self._root / files.directory
        for path in sorted(directory.iterdir()) if is_directory(directory) else ():
            if path.name.endswith(files.temporary_name("")):
                remove(path)

    def _remove_all(self, files: ArtifactSet) -> None:
        remove(self._root / files.directory)

    def _sync_directories(self, files: ArtifactSet) -> None:
        # A new directory is an entry in its parent: each level up to the root's own entry counts.
        directory = self._root / files.directory
        while directory != self._root.parent:
            sync(directory)
            directory = directory.parent
        sync(directory)


async def _in_thread(call: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Run a blocking call in a thread, and outlast a cancel.

    A thread cannot be cancelled; a file that it still writes must not be closed under it.
    """
    running = asyncio.ensure_future(asyncio.to_thread(call, *given, **named))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait((running,))
        raise


def _open_at(path: Path, offset: int) -> int:
    descriptor = open_file(path, 0)
    os.ftruncate(descriptor, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return descriptor


def _remove_from_set(path: Path) -> None:
    if is_directory(path.parent):
        remove(path)


def _read_at(path: Path, offset: int, size: int) -> bytes:
    if not is_directory(path.parent) or not is_file(path):
        return b""
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(size)


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _replace(temporary: Path, final: Path) -> None:
    # A rename takes the place of anything but a directory.
    if is_directory(final):
        remove(final)
    temporary.replace(final)
