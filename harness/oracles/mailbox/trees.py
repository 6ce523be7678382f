"""Trees: published whole or not at all, and nothing outside the worker's places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.model.oracle import Finding, broken_if, first_seen
from harness.oracles.mailbox.artifacts import read_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from harness.model.oracle import Evidence
    from harness.model.workload import Command


@dataclass(frozen=True, slots=True)
class TreesWhole:
    """The files of a command stand at their final paths all or none (ZIP-03).

    Attributes:
        directory: Directory of artifacts, below the worker's.
        expected: Path below `directory` to SHA-256 of every file of a command's tree.
    """

    directory: str
    expected: Callable[[Command], Mapping[str, str]]
    name: str = "trees-whole"
    promise: str = "of a tree all files are at their final paths, or none"
    remedy: str = (
        "Make the tree beside its final path, and rename the whole directory when every file "
        "in it is there."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Look at every image."""
        return broken_if(first_seen(self._faults(evidence)))

    def _faults(self, evidence: Evidence) -> Iterator[tuple[str, str]]:
        for when, image in evidence.images:
            found = dict(read_files(image.worker_dir / self.directory))
            for command in evidence.workload.commands:
                asked = self.expected(command)
                there = [path for path in asked if path in found]
                if there and len(there) < len(asked):
                    yield (
                        when,
                        f"{len(there)} of {len(asked)} files of {command.command_id!r} are there",
                    )


@dataclass(frozen=True, slots=True)
class NothingOutside:
    """The worker's directory holds nothing but what belongs there (INV-12).

    Attributes:
        places: Beginnings of the names at its top that belong there.
    """

    places: tuple[str, ...]
    name: str = "nothing-outside"
    promise: str = "nothing is written outside the places of the worker"
    remedy: str = (
        "Resolve every path before writing, and refuse what does not lie inside the place "
        "that is meant."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Look at the top of every image."""
        return broken_if(
            first_seen(
                (when, f"{path.name!r} does not belong in the worker's directory")
                for when, image in evidence.images
                for path in sorted(image.worker_dir.iterdir())
                if not path.name.startswith(self.places)
            )
        )
