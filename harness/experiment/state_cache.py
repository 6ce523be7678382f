"""What is known already, so that equal states are not run through again.

What a worker does from some durable state on is decided by that state, the seed and the number of
the incarnation. So experiments share three things: the beginning of schedules that strike their
first incarnations alike, the recovery from equal crash images, and the second restart of workers
that settled in equal states. Nothing here can make a verdict: what does not hold is run from the
start without it (`harness.experiment.lane`).
"""

from __future__ import annotations

import os
import shutil
import stat
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from harness.images.workspace import copy_files
from harness.model.image import Image

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.experiment.ends import Recovery, RestartResult
    from harness.model.oracle import EndedIncarnation

StateKey: TypeAlias = tuple[str, int, int, str]
"""Scenario, seed, number of the incarnation that is to be started, digest of what is durable."""

PrefixKey: TypeAlias = tuple[str, int, str]
"""Scenario, seed, and the strikes of what has ended, as the text of a schedule."""

K = TypeVar("K")
V = TypeVar("V")

_KEPT = 64
_KEPT_PREFIXES = 8


class BoundedCache(Generic[K, V]):
    """Values with directories of their own; the least used are forgotten.

    Args:
        directory: Where the directories are; it is made.
        most: How many are kept.
    """

    def __init__(self, directory: Path, most: int = _KEPT) -> None:
        self._directory = directory
        self._directory.mkdir()
        self._most = most
        self._known: OrderedDict[K, tuple[V, Path]] = OrderedDict()
        self._count = 0

    def find(self, key: K) -> V | None:
        """Return what is known under a key."""
        if key not in self._known:
            return None
        self._known.move_to_end(key)
        return self._known[key][0]

    def keep(self, key: K, make: Callable[[Path], V]) -> V:
        """Remember a value.

        Args:
            key: What finds it again.
            make: Makes it in a directory of its own.

        Returns:
            The value.
        """
        self._count += 1
        home = self._directory / str(self._count)
        home.mkdir()
        value = make(home)
        if key in self._known:
            shutil.rmtree(self._known.pop(key)[1])
        self._known[key] = (value, home)
        if len(self._known) > self._most:
            _, (_, oldest) = self._known.popitem(last=False)
            shutil.rmtree(oldest)
        return value


@dataclass(frozen=True, slots=True)
class KnownRecovery:
    """A recovery, and where it leads.

    Attributes:
        recovery: What came of it.
        settled: The state in which it left the worker.
    """

    recovery: Recovery
    settled: StateKey

    def copied_to(self, home: Path) -> KnownRecovery:
        """Return the same with its image copied to a directory."""
        ended = self.recovery.incarnation
        copied = replace(ended, after=_copied(ended.after, home))
        return replace(self, recovery=replace(self.recovery, incarnation=copied))


def restart_after(restart: RestartResult, recovered: EndedIncarnation) -> RestartResult:
    """Return a restart as it follows on a recovery: it began where that one ended."""
    first, *rest = restart.incarnations
    return replace(restart, incarnations=(replace(first, before=recovered.after), *rest))


def moved_to(restart: RestartResult, home: Path) -> RestartResult:
    """Return the same restart with its images, which nobody else may use, moved to a directory."""
    moved: dict[Path, Image] = {}
    for image in (restart.after_restart, *(ended.after for ended in restart.incarnations)):
        if image.path not in moved:
            target = home / image.path.name
            image.path.rename(target)
            moved[image.path] = Image(target)
    return replace(
        restart,
        incarnations=tuple(
            replace(
                ended,
                before=moved.get(ended.before.path, ended.before),
                after=moved[ended.after.path],
            )
            for ended in restart.incarnations
        ),
        after_restart=moved[restart.after_restart.path],
    )


@dataclass(frozen=True, slots=True)
class PrefixSnapshot:
    """An experiment between two incarnations, to go on from more than once.

    Attributes:
        incarnations: The incarnations that have ended.
        home: Directory with ``worker/`` and ``world/`` as they were, modes and times included.
    """

    incarnations: tuple[EndedIncarnation, ...]
    home: Path

    @classmethod
    def of(
        cls, incarnations: tuple[EndedIncarnation, ...], worker_dir: Path, home: Path
    ) -> PrefixSnapshot:
        """Make a beginning of what has happened so far.

        Args:
            incarnations: The incarnations that have ended, the image of the last one taken.
            worker_dir: The worker's directory; `can_go_on_from` has looked at it.
            home: Where to keep it all.
        """
        shutil.copytree(worker_dir, home / "worker", symlinks=True)
        # The world's image is made such that its services go on from it.
        copy_files(incarnations[-1].after.world_dir, home / "world")
        images = home / "images"
        images.mkdir()
        copies = {life.after.path: _copied(life.after, images) for life in incarnations}
        return cls(
            tuple(
                replace(
                    life,
                    before=copies.get(life.before.path, life.before),
                    after=copies[life.after.path],
                )
                for life in incarnations
            ),
            home,
        )

    def restore(self, worker_dir: Path, world_dir: Path) -> None:
        """Put the durable state where it was.

        Args:
            worker_dir: The worker's directory, empty.
            world_dir: The world's directory, empty.
        """
        shutil.copytree(self.home / "worker", worker_dir, symlinks=True, dirs_exist_ok=True)
        shutil.copytree(self.home / "world", world_dir, symlinks=True, dirs_exist_ok=True)


class StateCache:
    """Everything that is known.

    Args:
        directory: Where it is kept; it is made.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.prefixes: BoundedCache[PrefixKey, PrefixSnapshot] = BoundedCache(
            directory / "prefixes", _KEPT_PREFIXES
        )
        self.recoveries: BoundedCache[StateKey, KnownRecovery] = BoundedCache(
            directory / "recoveries"
        )
        self.restarts: BoundedCache[StateKey, RestartResult] = BoundedCache(directory / "restarts")


def can_go_on_from(directory: Path) -> bool:
    """Tell whether a copy of a directory is as good as the directory to a program that starts.

    Sockets, pipes and second names of one file are not what they were in a copy.

    Args:
        directory: The directory.
    """
    for folder, _, names in os.walk(directory):
        for name in names:
            status = Path(folder, name).lstat()
            if stat.S_ISLNK(status.st_mode):
                continue
            if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
                return False
    return True


def _copied(image: Image, home: Path) -> Image:
    copy = home / image.path.name
    copy_files(image.path, copy)
    return Image(copy)
