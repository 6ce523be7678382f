"""The journal of a run: what has finished, written down as it goes, so that a kill loses nothing.

A line is written by one call and not synced: what a killed process has written is there, and only a
power loss may take lines. A last line that is torn is dropped; a journal with a line that is whole
and not what was written is refused. While a run lives it holds
a lock on its journal, which the kernel takes from whoever dies. The journal is deleted when the run
is over; so a run that has one is not over.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, cast

from harness.images.run_folder import RunFolder
from harness.model.errors import HarnessError, UsageError
from harness.record.journal_format import (
    SCHEMA,
    Finished,
    HeaderLine,
    PlannedLine,
    finished_line,
    read_finished,
)
from harness.record.sealed_lines import AlteredLineError, seal, unseal
from harness.record.typed_dicts import as_declared

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from harness.model.canonical_json import Json


class NotBegunError(UsageError):
    """A journal has no first line: its run was killed before anything had been written."""


@dataclass(frozen=True, slots=True)
class JournalContent:
    """What a journal says.

    Attributes:
        header: Its first line.
        planned: What was asked for, in order.
        finished: The experiments that have finished, in order.
        checksum: That of its last line, which the next one goes on from.
    """

    header: HeaderLine
    planned: tuple[PlannedLine, ...] = ()
    finished: tuple[Finished, ...] = ()
    checksum: int = 0


def read_journal(directory: Path) -> JournalContent:
    """Read the journal of a run.

    Args:
        directory: The run's directory.

    Raises:
        NotBegunError: It has no first line.
        UsageError: There is none, it is of another version, or a line that is whole is not one of a
            journal.
    """
    path = RunFolder(directory).journal
    descriptor = _opened(path, os.O_RDONLY)
    try:
        return _parsed(_read(descriptor), path)
    finally:
        os.close(descriptor)


def is_being_written(directory: Path) -> bool:
    """Tell whether a process that lives is writing the journal of a run."""
    try:
        descriptor = _opened(RunFolder(directory).journal, os.O_RDONLY)
    except UsageError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


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
        descriptor = _opened(path, os.O_RDWR | os.O_APPEND)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"{directory} is still being written by a process that lives; "
                    "wait for its end, or stop it with SIGINT"
                ) from None
            if not os.fstat(descriptor).st_nlink:
                raise UsageError(f"{directory} has come to its end just now")
            data = _read(descriptor)
            content = _parsed(data, path)
            os.ftruncate(descriptor, _whole(data))
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


def _opened(path: Path, flags: int) -> int:
    """Open the file of a journal; a pipe in its place is not waited for."""
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise UsageError(f"no journal of a run at {path}: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UsageError(f"no journal of a run at {path}: it is not a file")
    return descriptor


def _read(descriptor: int) -> bytes:
    with open(descriptor, "rb", closefd=False) as file:
        return file.read()


def _unwritable(path: Path, error: OSError) -> HarnessError:
    return HarnessError(f"the journal of the run cannot be written: {path}: {error.strerror}")


def _whole(data: bytes) -> int:
    """Return how many bytes are whole lines; what follows is a torn one."""
    return data.rfind(b"\n") + 1


def _parsed(data: bytes, path: Path) -> JournalContent:
    first, *lines = data[: _whole(data)].split(b"\n")
    if not first:
        raise NotBegunError(f"{path} has no first line: the run was killed before it had begun")
    _check_schema(first, path)
    line, checksum = _unsealed(first, 0, path, 1)
    header = as_declared(line, HeaderLine, f"{path}, line 1")
    planned: list[PlannedLine] = []
    finished: list[Finished] = []
    for number, text in enumerate(lines[:-1], start=2):
        line, checksum = _unsealed(text, checksum, path, number)
        where = f"{path}, line {number}"
        if "planned" in line:
            planned.append(as_declared(line, PlannedLine, where))
        else:
            finished.append(read_finished(line, where))
    return JournalContent(header, tuple(planned), tuple(finished), checksum)


def _check_schema(first: bytes, path: Path) -> None:
    """Refuse the journal of another version, whose lines may be sealed in another way."""
    try:
        line = json.loads(first)
    except (ValueError, RecursionError):
        return  # it was altered, as its checksum says
    found = line.get("journal") if isinstance(line, dict) else None
    if isinstance(found, str) and found != SCHEMA:
        raise UsageError(
            f"{path} has schema {found!r}, and this version reads {SCHEMA!r} alone; "
            "use the version of crash-harness that wrote it, or begin the run anew"
        )


def _unsealed(line: bytes, before: int, path: Path, number: int) -> tuple[dict[str, Json], int]:
    try:
        return unseal(line, before)
    except AlteredLineError:
        rest = "" if number == 1 else f"delete it from line {number} on to keep what is before, or "
        raise UsageError(
            f"{path}, line {number}: this is not what a run wrote there; {rest}begin the run anew"
        ) from None


def runs_with_a_journal(out: Path) -> Sequence[Path]:
    """Return the folders of runs that are not over, the latest first.

    Args:
        out: Directory of all runs.
    """
    if not out.is_dir():
        return []
    found = [path for path in out.iterdir() if not path.is_symlink() and path.is_dir()]
    there = [path for path in found if RunFolder(path).journal.exists()]
    return sorted(there, key=_age, reverse=True)


def _age(path: Path) -> tuple[str, int]:
    time, _, attempt = path.name.partition("-")
    return time, int(attempt) if attempt.isdecimal() else 1
