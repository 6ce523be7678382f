"""The workspace of an experiment, and copies of it: crash images."""

from __future__ import annotations

import os
import site
from typing import TYPE_CHECKING, TypeVar

from harness.images.deletion import remove_tree
from harness.images.digest import PARTS
from harness.images.tree import (
    TooLargeError,
    UnimageableError,
    copy_tree,
    make_links_relative,
    room_bytes,
)
from harness.model.bounds import MIB, USUAL_BOUNDS
from harness.model.image import Image

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

T = TypeVar("T")


class Workspace(Image):
    """The live directory of one experiment.

    ``worker/`` is what the worker writes, ``world/`` what lies outside and survives. ``home/``,
    ``tmp/`` and ``cwd/`` are the home directory, the directory for temporary files and the working
    directory of its incarnations, so that what they keep there is theirs alone and durable like the
    rest. ``control/`` holds orders, traces and output of the incarnations, ``images/`` the crash
    images.

    Args:
        path: Directory to create; it must not exist.
        most_mib: How much room its files may take on the disk, in MiB (`Bounds.workspace_mib`).

    Attributes:
        since_ns: When the experiment began, in nanoseconds since the epoch.
    """

    def __init__(self, path: Path, most_mib: int = USUAL_BOUNDS.workspace_mib) -> None:
        super().__init__(path)
        self._most_mib = most_mib
        self.control_dir = path / "control"
        self.images_dir = path / "images"
        home = str(path)
        for name in ("", *PARTS, "control", "images"):
            os.mkdir(f"{home}/{name}")  # noqa: PTH102 - in every experiment
        # By the clock of the file system, which lags behind: nothing in here is older.
        self.since_ns = os.stat(self.images_dir).st_mtime_ns  # noqa: PTH116
        for name in PARTS:
            # They are new together, however long it took to make them.
            os.utime(f"{home}/{name}", ns=(self.since_ns, self.since_ns))

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

        Raises:
            UnimageableError: The worker has left something of which no image can be taken.
        """
        home, kept = str(self.path), str(image.path)
        image.path.mkdir()
        left_bytes = self._most_mib * MIB
        for name in self._kept():
            if name == "world" and snapshot_world:
                snapshot_world(image.world_dir)
                continue
            try:
                left_bytes -= copy_tree(
                    f"{home}/{name}", f"{kept}/{name}", relative_links=True, most_bytes=left_bytes
                )
            except TooLargeError:
                raise UnimageableError(self.too_large) from None

    def move_to(self, image: Image, snapshot_world: Callable[[Path], None] | None = None) -> None:
        """Make an image of the durable state when nothing will touch it any more, by moving it.

        Args:
            image: A new image.
            snapshot_world: As for `copy_to`.

        Raises:
            UnimageableError: As for `copy_to`.
        """
        home, kept = str(self.path), str(image.path)
        image.path.mkdir()
        for name in self._kept():
            if name == "world" and snapshot_world:
                snapshot_world(image.world_dir)
            else:
                make_links_relative(f"{home}/{name}")
                os.rename(f"{home}/{name}", f"{kept}/{name}")  # noqa: PTH104

    def excess(self) -> str:
        """Say that the files of the worker take more room than they may; nothing if they do not.

        Images do not count, as the harness makes them.
        """
        left_bytes = self._most_mib * MIB
        for name in (*PARTS, self.control_dir.name):
            left_bytes -= room_bytes(self.path / name, left_bytes)
            if left_bytes < 0:
                return self.too_large
        return ""

    @property
    def too_large(self) -> str:
        """What to say of a worker whose files take more room than they may."""
        return (
            f"what the worker has written takes more room than its bound of {self._most_mib:,} MiB"
            " (Scenario(bounds=Bounds(workspace_mib=...)) allows more)"
        )

    def _kept(self) -> Iterator[str]:
        """Give the parts that belong to an image: those around the worker only if used."""
        for name in PARTS:
            if name in ("worker", "world") or _used(f"{self.path}/{name}"):
                yield name

    def remove(self) -> None:
        """Delete the workspace with everything in it.

        Raises:
            OSError: Something cannot be deleted.
        """
        remove_tree(self.path)


def _used(directory: str) -> bool:
    try:
        with os.scandir(directory) as entries:
            return next(entries, None) is not None
    except FileNotFoundError:  # the worker has removed it
        return False


def surroundings(path: Path) -> dict[str, str | None]:
    """Return the environment variables of processes that live in a workspace.

    What programs put into a home directory, into temporary files or into the directories of the XDG
    base directory specification then lies in the workspace. The packages that Python finds in the
    user's home are found all the same.

    Args:
        path: The workspace's path.

    Returns:
        Values by name; None for a variable that is to be unset.
    """
    moved = {name: None for name in os.environ if name.startswith("XDG_")}
    base = {"PYTHONUSERBASE": site.getuserbase()} if site.ENABLE_USER_SITE else {}
    return {
        **moved,
        **base,
        "HOME": str(path / "home"),
        "TMPDIR": str(path / "tmp"),
        "XDG_RUNTIME_DIR": str(path / "tmp"),
    }


def empty_image(directory: Path) -> Image:
    """Return the image of what is durable before the first incarnation: nothing.

    Args:
        directory: Where it is, for all experiments alike.
    """
    image = Image(directory / "empty")
    if not image.world_dir.is_dir():  # made last
        for part in (image.path, image.worker_dir, image.world_dir):
            part.mkdir(exist_ok=True)
    return image
