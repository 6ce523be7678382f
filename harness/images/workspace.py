"""The workspace of an experiment, and copies of it: crash images."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from harness.model.image import Image

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_ROOM = 256 * 1024 * 1024


def default_root() -> Path:
    """Return where workspaces are made when nothing is said: memory if there is room.

    A process kill leaves the page cache alone, so a file system in memory shows the same as a disk
    and is several times faster.
    """
    memory = Path("/dev/shm")  # noqa: S108 - a directory of our own is made in it
    try:
        free = os.statvfs(memory)
    except OSError:
        return Path(tempfile.gettempdir())
    if os.access(memory, os.W_OK) and free.f_bavail * free.f_frsize > _ROOM:
        return memory
    return Path(tempfile.gettempdir())


class Workspace(Image):
    """The live directory of one experiment.

    ``worker/`` is what the worker writes, ``world/`` what lies outside and survives, ``control/``
    holds orders, traces and output of the incarnations, ``images/`` the crash images.

    Args:
        path: Directory to create; it must not exist.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.control_dir = path / "control"
        self.images_dir = path / "images"
        for directory in (path, self.worker_dir, self.world_dir, self.control_dir, self.images_dir):
            os.mkdir(directory)  # noqa: PTH102 - as in `copy_files`

    def read(self, reader: Callable[[Path], T], directory: Path) -> T:
        """Return what a reader makes of a directory now: unlike an image, a workspace changes."""
        return reader(directory)

    def new_image(self, name: str) -> Image:
        """Return where an image will be; `copy_to` or `move_to` makes it."""
        return Image(self.images_dir / name)

    def copy_to(self, image: Image, snapshot_world: Callable[[Path], None] | None = None) -> None:
        """Copy the durable state; the image never changes afterwards.

        Args:
            image: A new image.
            snapshot_world: Copies ``world/`` consistently to a path while its services run; a
                plain copy when absent.
        """
        image.path.mkdir()
        copy_files(self.worker_dir, image.worker_dir)
        self._world_to(image, snapshot_world, copy_files)

    def move_to(self, image: Image, snapshot_world: Callable[[Path], None] | None = None) -> None:
        """Make an image of the durable state when nothing will touch it any more, by moving it.

        Args:
            image: A new image.
            snapshot_world: As for `copy_to`.
        """
        image.path.mkdir()
        self.worker_dir.rename(image.worker_dir)
        self._world_to(image, snapshot_world, Path.rename)

    def _world_to(
        self,
        image: Image,
        snapshot_world: Callable[[Path], None] | None,
        plainly: Callable[[Path, Path], object],
    ) -> None:
        if snapshot_world:
            snapshot_world(image.world_dir)
        else:
            plainly(self.world_dir, image.world_dir)

    def remove(self) -> None:
        """Delete the workspace with everything in it."""
        remove_files(str(self.path))


def empty_image(directory: Path) -> Image:
    """Return the image of what is durable before the first incarnation: nothing.

    Args:
        directory: Where it is, for all experiments alike.
    """
    image = Image(directory / "empty")
    for part in (image.path, image.worker_dir, image.world_dir):
        part.mkdir(exist_ok=True)
    return image


def remove_files(directory: str) -> None:
    """Delete a directory tree of our own; what `shutil.rmtree` does against races is not needed.

    Args:
        directory: Directory to delete.
    """
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                remove_files(entry.path)
            else:
                os.unlink(entry.path)  # noqa: PTH108 - one of a dozen in each experiment
    os.rmdir(directory)  # noqa: PTH106


def copy_files(source: Path | str, destination: Path | str) -> None:
    """Copy a directory tree: directories, files and symbolic links; sockets and pipes are left.

    Args:
        source: Directory to copy.
        destination: Directory to create.
    """
    os.mkdir(destination)  # noqa: PTH102 - texts, not paths: this runs in every experiment
    with os.scandir(source) as entries:
        for entry in entries:
            target = f"{destination}/{entry.name}"
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), target)  # noqa: PTH115, PTH211
            elif entry.is_dir():
                copy_files(entry.path, target)
            elif entry.is_file():
                shutil.copyfile(entry.path, target)
