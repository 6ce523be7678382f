"""Artifacts: a file at its final path is whole, and nothing half-made is left."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.model.oracle import Finding, broken_if, first_seen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from harness.model.oracle import Evidence
    from harness.model.workload import Command
    from harness.oracles.mailbox.worker_state import StateReader


@dataclass(frozen=True, slots=True)
class ArtifactsWhole:
    """Files at final paths have the right checksum at every moment (INV-11, FIL-03).

    What is right is worked out from the commands, not read from the worker.

    Attributes:
        read_books: Reader of the worker's books.
        directory: Directory of artifacts, below the worker's.
        expected: Path below `directory` to SHA-256 of every file that a command asks for.
        temporary: Tells by its name whether a file is not at a final path.
    """

    read_books: StateReader
    directory: str
    expected: Callable[[Command], Mapping[str, str]]
    temporary: Callable[[str], bool]
    name: str = "artifacts-whole"
    promise: str = "a file at its final path is whole by checksum, and no temporary file is left"
    remedy: str = (
        "Write under a temporary name of this attempt, and rename it when it is whole; go on "
        "from what is there only after comparing its checksum."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Look at every file of every image, and at the books when the worker is quiet."""
        return broken_if(first_seen(self._faults(evidence)))

    def _faults(self, evidence: Evidence) -> Iterator[tuple[str, str]]:
        workload = evidence.workload
        asked: dict[str, str] = {}
        for command in (*workload.commands, workload.fresh):
            asked.update(self.expected(command))
        for number, (when, image) in enumerate(evidence.images, start=1):
            for path, checksum in read_files(image.worker_dir / self.directory):
                if self.temporary(path):
                    if number > len(evidence.struck):
                        yield when, f"temporary file {path!r} is left"
                elif asked.get(path) != checksum:
                    wrong = "is torn or wrong" if path in asked else "was never asked for"
                    yield when, f"file {path!r} {wrong}"
        files = dict(read_files(evidence.final.worker_dir / self.directory))
        books = evidence.final.read(self.read_books, evidence.final.worker_dir)
        booked = {row.path: row.sha256 for row in books.artifacts}
        for path, checksum in asked.items():
            if path not in files:
                yield "at the end", f"file {path!r} is missing"
            if booked.get(path) != checksum:
                yield "at the end", f"the books have file {path!r} as {booked.get(path)}"


def read_files(directory: Path) -> Iterator[tuple[str, str]]:
    """Give the path and the SHA-256 of every file below a directory, in order of paths."""
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            checksum = hashlib.sha256(path.read_bytes()).hexdigest()
            yield path.relative_to(directory).as_posix(), checksum
