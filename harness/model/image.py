"""A crash image: everything durable of an experiment at one moment."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from pathlib import Path

T = TypeVar("T")


class Image:
    """Everything durable of an experiment at one moment.

    Args:
        path: Directory with ``worker/`` and ``world/``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read: dict[Hashable, object] = {}

    @cached_property
    def worker_dir(self) -> Path:
        """What the worker has written."""
        return self.path / "worker"

    @cached_property
    def world_dir(self) -> Path:
        """What lies outside of the worker."""
        return self.path / "world"

    def read(self, reader: Callable[[Path], T], directory: Path) -> T:
        """Return what a reader makes of a directory of this image; read once, then remembered.

        Args:
            reader: A function of a directory without side effects.
            directory: `worker_dir` or `world_dir`.
        """
        key = (reader, directory)
        if key not in self._read:
            self._read[key] = reader(directory)
        return cast("T", self._read[key])
