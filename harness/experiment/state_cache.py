"""What is known of equal states: prefixes, recoveries and restarts, each with its files.

Each kind of value has a directory of its own and a bound; the least used is forgotten. What may be
shared, and when, is decided in `harness.experiment.sharing`.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from harness.images.deletion import remove_tree
from harness.images.digest import PARTS
from harness.images.metadata import metadata_digest
from harness.images.tree import copy_tree
from harness.model.image import Image

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.experiment.ends import Recovery, RestartResult
    from harness.images.workspace import Workspace
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

    def keep(self, key: K, make: Callable[[Path], V | None]) -> V | None:
        """Remember a value.

        Args:
            key: What finds it again.
            make: Makes it in a directory of its own; None if there is nothing to remember.

        Returns:
            The value.
        """
        self._count += 1
        home = self._directory / str(self._count)
        home.mkdir()
        value = make(home)
        if value is None:
            remove_tree(home)
            return None
        if key in self._known:
            remove_tree(self._known.pop(key)[1])
        self._known[key] = (value, home)
        if len(self._known) > self._most:
            _, (_, oldest) = self._known.popitem(last=False)
            remove_tree(oldest)
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
        home: Directory with all that is durable, as it was.
        since_ns: When the experiment began, in nanoseconds since the epoch.
    """

    incarnations: tuple[EndedIncarnation, ...]
    home: Path
    since_ns: int

    @classmethod
    def of(
        cls,
        incarnations: tuple[EndedIncarnation, ...],
        workspace: Workspace,
        home: Path,
        *,
        world_from_image: bool,
    ) -> PrefixSnapshot | None:
        """Take a snapshot of what has happened so far.

        Args:
            incarnations: The incarnations that have ended, the image of the last one taken.
            workspace: Where they ran; nothing runs there now.
            home: Where to keep it all.
            world_from_image: Whether the world is taken from the last image, which is made such
                that its services go on from it.

        Returns:
            The snapshot, or None if a program could tell the copy from what was copied.
        """
        for part in PARTS:
            if part == "world" and world_from_image:
                copy_tree(incarnations[-1].after.world_dir, home / part)
            else:
                copy_tree(workspace.path / part, home / part)
        compared = [part for part in PARTS if part != "world" or not world_from_image]
        here, there = (
            metadata_digest(path, compared, workspace.since_ns, links_into=workspace.path)
            for path in (workspace.path, home)
        )
        if here != there:
            return None
        images = home / "images"
        images.mkdir()
        copies = {ended.after.path: _copied(ended.after, images) for ended in incarnations}
        return cls(
            tuple(
                replace(
                    ended,
                    before=copies.get(ended.before.path, ended.before),
                    after=copies[ended.after.path],
                )
                for ended in incarnations
            ),
            home,
            workspace.since_ns,
        )

    def restore(self, workspace: Workspace) -> None:
        """Put the durable state where it was.

        Args:
            workspace: A new one, at the same path as at that time.
        """
        for part in PARTS:
            target = workspace.path / part
            target.rmdir()
            copy_tree(self.home / part, target)
        workspace.since_ns = self.since_ns


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


def _copied(image: Image, home: Path) -> Image:
    copy = home / image.path.name
    copy_tree(image.path, copy)
    return Image(copy)
