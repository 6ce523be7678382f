"""Kept: what was whole when the worker died is used by the next life, not made again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.model.oracle import Finding, broken_if
from harness.oracles.mailbox.artifacts import read_files
from harness.oracles.mailbox.worker_state import ENDED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from harness.model.oracle import EndedIncarnation, Evidence
    from harness.model.workload import Command
    from harness.oracles.mailbox.worker_state import StateReader


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
        """Compare what each life found with what it wrote."""
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
