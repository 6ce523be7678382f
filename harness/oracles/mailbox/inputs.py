"""Inputs: a result is made of the input that its attempt began with, and of one version."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.model.oracle import Finding, broken_if, first_seen
from harness.oracles.mailbox.artifacts import read_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness.model.oracle import Evidence
    from harness.oracles.mailbox.worker_state import StateReader


@dataclass(frozen=True, slots=True)
class InputKept:
    """A result names the input that was recorded before it (REC-03).

    Attributes:
        read_books: Reader of the worker's books.
        field: The field of evidence and result that names the input.
    """

    read_books: StateReader
    field: str = "input"
    name: str = "input-kept"
    promise: str = "a result is made of the input that its attempt recorded at first"
    remedy: str = (
        "Save which version of the input the work began with, and compare before going on; "
        "with another input this attempt cannot succeed."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Compare the results at the end with the first input that any image recorded."""
        begun: dict[str, object] = {}
        for _, image in evidence.images:
            for row in image.read(self.read_books, image.worker_dir).attempts:
                named = json.loads(row.evidence or "{}").get(self.field)
                if named is not None:
                    begun.setdefault(row.attempt_id, named)
        found = []
        for event in evidence.final.read(self.read_books, evidence.final.worker_dir).outbox:
            made_of = json.loads(event.digest).get(self.field)
            began = begun.get(event.attempt_id)
            if event.kind == "succeeded" and began not in (None, made_of):
                found.append(
                    f"command {event.command_id!r} began with input {began} "
                    f"and its result is made of {made_of}"
                )
        return broken_if(found)


@dataclass(frozen=True, slots=True)
class OneVersion:
    """A file made of a source that changes is one version of it, never a mixture (REC-08).

    Attributes:
        directory: Directory of artifacts, below the worker's.
        versions: Checksums of the versions.
        temporary: Tells by its path whether a file is not at a final path.
    """

    directory: str
    versions: frozenset[str]
    temporary: Callable[[str], bool]
    name: str = "one-version"
    promise: str = "a file at its final path is one version of its source"
    remedy: str = (
        "Save the version of the source with the first part, and begin anew when the source "
        "has another one."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Look at every file of every image."""
        return broken_if(first_seen(self._faults(evidence)))

    def _faults(self, evidence: Evidence) -> Iterator[tuple[str, str]]:
        for when, image in evidence.images:
            for path, checksum in read_files(image.worker_dir / self.directory):
                if not self.temporary(path) and checksum not in self.versions:
                    yield when, f"file {path!r} is no version of its source"
