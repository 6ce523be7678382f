"""Artifacts: whole, made of one recorded input, made once, and nothing half-made or misplaced."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.model.oracle import Finding, broken_if, first_seen
from harness.oracles.mailbox.worker_state import ENDED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from harness.model.image import Image
    from harness.model.oracle import EndedIncarnation, Evidence
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
        asked = self._asked((*evidence.workload.commands, evidence.workload.fresh))
        for number, (when, image) in enumerate(evidence.images, start=1):
            for path, checksum in read_files(image.worker_dir / self.directory):
                if self.temporary(path):
                    if number > len(evidence.struck):
                        yield when, f"temporary file {path!r} is left"
                elif asked.get(path) != checksum:
                    wrong = "is torn or wrong" if path in asked else "was never asked for"
                    yield when, f"file {path!r} {wrong}"
        commands = evidence.workload.commands
        yield from self._missing("at rest", evidence.settled, self._asked(commands))
        yield from self._missing("at the end", evidence.final, self._asked(evidence.asked))

    def _asked(self, commands: Iterable[Command]) -> dict[str, str]:
        asked: dict[str, str] = {}
        for command in commands:
            asked.update(self.expected(command))
        return asked

    def _missing(
        self, when: str, image: Image, asked: Mapping[str, str]
    ) -> Iterator[tuple[str, str]]:
        files = dict(read_files(image.worker_dir / self.directory))
        books = image.read(self.read_books, image.worker_dir)
        booked = {row.path: row.sha256 for row in books.artifacts}
        for path, checksum in asked.items():
            if path not in files:
                yield when, f"file {path!r} is missing"
            if booked.get(path) != checksum:
                yield when, f"the books have file {path!r} as {booked.get(path)}"


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
    promise: str = "all files of a tree are at their final paths, or none are"
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


@dataclass(frozen=True, slots=True)
class FinishedPartsReused:
    """A part that an open attempt had finished before a crash is not made again (CLN-01, REC-04).

    Attributes:
        read_books: Reader of the worker's books.
        directory: Directory of artifacts, below the worker's.
        expected: Path below `directory` to SHA-256 of every file that a command asks for.
        written_at: Label of the point at which a part is written, with context ``command`` and
            ``part``.
    """

    read_books: StateReader
    directory: str
    expected: Callable[[Command], Mapping[str, str]]
    written_at: str
    name: str = "whole-parts-kept"
    promise: str = "a part that was whole when the worker died is not made again"
    remedy: str = (
        "Remove a temporary file only when its attempt is over, and go on from every part "
        "that is whole by its checksum."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Compare what each incarnation found with what it wrote."""
        workload = evidence.workload
        asked: dict[str, str] = {}
        for command in (*workload.commands, workload.fresh):
            asked.update(self.expected(command))
        return broken_if(
            fact for life in evidence.incarnations for fact in self._made_again(life, asked)
        )

    def _made_again(self, life: EndedIncarnation, asked: Mapping[str, str]) -> Iterator[str]:
        books = life.before.read(self.read_books, life.before.worker_dir)
        still_open = {row.command_id for row in books.attempts if row.state not in ENDED}
        found = dict(read_files(life.before.worker_dir / self.directory))
        for hit in life.hits:
            command, part = hit.context.get("command", ""), hit.context.get("part", "")
            path = f"{command}/{part}"
            if hit.label == self.written_at and command in still_open and path in asked:
                whole = [
                    each
                    for each, checksum in found.items()
                    if each.startswith(path) and checksum == asked[path]
                ]
                if whole:
                    yield f"incarnation {life.number}: {whole[0]!r} was whole and was made again"


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
                    yield when, f"file {path!r} is not a version of its source"


def read_files(directory: Path) -> Iterator[tuple[str, str]]:
    """Give the path and the SHA-256 of every file below a directory, in order of paths."""
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            checksum = hashlib.sha256(path.read_bytes()).hexdigest()
            yield path.relative_to(directory).as_posix(), checksum
