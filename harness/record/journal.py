"""The journal of a run: what has finished, written down as it goes, so that a kill loses nothing.

A line is written by one call and not synced: what a killed process has written is there, and only a
power loss may take lines. A last line that is torn is dropped; a journal with a line that is whole
and not what was written is refused. While a run lives it holds
a lock on its journal, which the kernel takes from whoever dies. The journal is deleted when the run
is over; so a run that has one is not over.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Self, cast

from harness.images.run_folder import RunFolder
from harness.model.errors import HarnessError, UsageError
from harness.record.journal_content import JournalContent, open_journal, read_opened
from harness.record.journal_format import (
    Finished,
    HeaderLine,
    PlannedLine,
    finished_line,
)
from harness.record.sealed_lines import seal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from harness.model.canonical_json import Json


class Journal:
    """A journal that is being written, with its lock; see `begin` and `go_on`.

    Args:
        path: The file.
        descriptor: Opened to append, and locked.
        content: What is in it.

    Attributes:
        directory: The run's directory.
        content: What was in it when it was opened.
    """

    def __init__(self, path: Path, descriptor: int, content: JournalContent) -> None:
        self._path = path
        self._descriptor = descriptor
        self.directory = path.parent
        self.content = content
        self._kept = {f.result.fingerprint for f in content.finished if f.asked.kept} - {""}
        self._finished = len(content.finished)
        self._checksum = content.checksum

    @classmethod
    def begin(cls, directory: Path, header: HeaderLine) -> Self:
        """Begin the journal of a run.

        Args:
            directory: The run's directory, which has none yet.
            header: What the run was asked.

        Raises:
            HarnessError: It cannot be written.
        """
        path = RunFolder(directory).journal
        try:
            # It is not masked as records are, so it is for nobody else to read.
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptor = os.open(path, flags, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            raise _unwritable(path, error) from None
        journal = cls(path, descriptor, JournalContent(header))
        journal._append(cast("Mapping[str, Json]", header))
        return journal

    @classmethod
    def go_on(cls, directory: Path) -> Self:
        """Open the journal of a run that was cut short, to go on with it.

        Args:
            directory: The run's directory.

        Raises:
            UsageError: There is none, it cannot be read (`read_journal`), or the run's process
                still lives.
        """
        path = RunFolder(directory).journal
        descriptor = open_journal(path, os.O_RDWR | os.O_APPEND)
        try:
            _lock(descriptor, directory)
            content, whole = read_opened(descriptor, path)
            os.ftruncate(descriptor, whole)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(path, descriptor, content)

    @property
    def is_empty(self) -> bool:
        """Whether no experiment has finished."""
        return self._finished == 0

    @property
    def kept(self) -> frozenset[str]:
        """Fingerprints of the failures whose folders belong to the run."""
        return frozenset(self._kept)

    def plan(self, experiments: int, *, kept: bool) -> None:
        """Write down that experiments were asked for.

        Args:
            experiments: How many.
            kept: Whether they are experiments of the plan.

        Raises:
            HarnessError: It cannot be written.
        """
        line: PlannedLine = {"planned": experiments, "kept": kept}
        self._append(cast("Mapping[str, Json]", line))

    def finish(self, finished: Finished) -> None:
        """Write down an experiment that has finished.

        Args:
            finished: Which, and what it came to.

        Raises:
            HarnessError: It cannot be written.
        """
        self._append(cast("Mapping[str, Json]", finished_line(finished)))
        self._finished += 1
        if finished.asked.kept and finished.result.fingerprint:
            self._kept.add(finished.result.fingerprint)

    def close(self, *, over: bool) -> None:
        """Let go of it.

        Args:
            over: Whether the run is over, so that nobody will go on with it: then it is deleted.
        """
        if self._descriptor < 0:
            return
        if over:
            with suppress(OSError):  # the folder cannot be written any more; the record is there
                self._path.unlink()
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)

    def _append(self, value: Mapping[str, Json]) -> None:
        line, checksum = seal(value, self._checksum)
        before = os.fstat(self._descriptor).st_size
        try:
            written = 0
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
        except OSError as error:
            os.ftruncate(self._descriptor, before)  # a line may be torn only where it is the last
            raise _unwritable(self._path, error) from None
        self._checksum = checksum


def _lock(descriptor: int, directory: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"{directory} is still being written by a process that lives; "
            "wait for its end, or stop it with SIGINT"
        ) from None
    if not os.fstat(descriptor).st_nlink:
        raise UsageError(f"{directory} came to its end just now: there is nothing to go on with")


def _unwritable(path: Path, error: OSError) -> HarnessError:
    return HarnessError(f"the journal of the run cannot be written: {path}: {error.strerror}")
