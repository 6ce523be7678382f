"""What the journal of a run says, and which runs have one."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.images.run_folder import RunFolder
from harness.model.errors import UsageError
from harness.record.journal_format import (
    SCHEMA,
    Finished,
    HeaderLine,
    PlannedLine,
    read_finished,
)
from harness.record.sealed_lines import AlteredLineError, unseal
from harness.record.typed_dicts import as_declared

if TYPE_CHECKING:
    from collections.abc import Sequence
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
    descriptor = open_journal(path, os.O_RDONLY)
    try:
        return read_opened(descriptor, path)[0]
    finally:
        os.close(descriptor)


def is_being_written(directory: Path) -> bool:
    """Tell whether a process that lives is writing the journal of a run."""
    try:
        descriptor = open_journal(RunFolder(directory).journal, os.O_RDONLY)
    except UsageError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def open_journal(path: Path, flags: int) -> int:
    """Open the file of a journal; a pipe in its place is not waited for.

    Args:
        path: The file.
        flags: How; see open(2).

    Returns:
        A descriptor.

    Raises:
        UsageError: There is none, or something else is in its place.
    """
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise UsageError(f"no journal of a run at {path}: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UsageError(f"no journal of a run at {path}: it is not a file")
    return descriptor


def read_opened(descriptor: int, path: Path) -> tuple[JournalContent, int]:
    """Read a journal.

    Args:
        descriptor: Opened at its beginning.
        path: The file, for messages.

    Returns:
        What it says, and how many bytes of it are whole lines; what follows is a torn one.

    Raises:
        NotBegunError: It has no first line.
        UsageError: It is of another version, or a line that is whole is not one of a journal.
    """
    with open(descriptor, "rb", closefd=False) as file:
        data = file.read()
    whole = data.rfind(b"\n") + 1
    return _parsed(data[:whole], path), whole


def _parsed(data: bytes, path: Path) -> JournalContent:
    first, *lines = data.split(b"\n")
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
