"""What one incarnation of a worker may take of the machine."""

from __future__ import annotations

import errno
import os
import re
import signal
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from harness.model.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.trace import Death

MIB = 1 << 20

BLOCK_BYTES = 512
"""What `st_blocks` counts in, whatever the file system does (stat(2))."""

_MOST = 1 << 40
"""What fits everywhere, in bytes as well as in MiB."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of one worker, so that a faulty one takes neither the machine nor the run.

    A worker that reaches one fails in its own experiment, and the note of that says which it was.
    How long a step of it may take is `Scenario.deadline_s`.

    Attributes:
        memory_mib: Memory of its own of each process, in MiB: heap, stacks, private maps that it
            writes. Files and memory that it shares with others do not count (RLIMIT_DATA).
        open_files: Files and sockets that each process has open (RLIMIT_NOFILE).
        file_mib: Length of a file that it writes, in MiB, holes and its output included
            (RLIMIT_FSIZE).
        workspace_mib: Room of all files of the experiment on the disk, in MiB. It is looked at
            now and then while an incarnation runs, and when an image is taken.
        processes: Processes that an incarnation has below it at once. They are counted now and
            then, as the kernel can only count all that a user has.

    Raises:
        UsageError: One is not a whole number of at least 1.
    """

    memory_mib: int = 4096
    open_files: int = 1024
    file_mib: int = 16_384
    workspace_mib: int = 1024
    processes: int = 256

    def __post_init__(self) -> None:
        for field in fields(self):
            value: object = getattr(self, field.name)
            if type(value) is not int or not 1 <= value < _MOST:
                raise UsageError(
                    f"Bounds({field.name}={value!r}): it must be a whole number of at least 1"
                )


USUAL_BOUNDS = Bounds()
"""Those of a scenario that names none."""


def bound_of_failure(death: Death, output: str, bounds: Bounds) -> str:
    """Say which bound a worker seems to have reached that did not end well; nothing if none.

    The kernel refuses a process what is beyond its bounds, and what comes of that is up to it; so
    it is told by the error that it shows.

    Args:
        death: How it ended.
        output: The end of what it wrote.
        bounds: Its bounds.
    """
    found = [
        f"{name} ({what} is what a process gets that reaches its bound of"
        f" {getattr(bounds, name):,}; Scenario(bounds=Bounds({name}=...)) allows more)"
        for name, what in _told(death, output)
    ]
    return f"bounds: {'; '.join(found)}" if found else ""


_SIGNS = (
    (
        "memory_mib",
        re.compile(rf"\bMemoryError\b|{os.strerror(errno.ENOMEM)}|can't start new thread"),
    ),
    ("open_files", re.compile(os.strerror(errno.EMFILE))),
    ("file_mib", re.compile(os.strerror(errno.EFBIG))),
)


def _told(death: Death, output: str) -> Iterator[tuple[str, str]]:
    if death.signal == signal.SIGXFSZ:
        yield "file_mib", str(death)
        return
    for name, sign in _SIGNS:
        if match := sign.search(output):
            yield name, repr(match[0])
