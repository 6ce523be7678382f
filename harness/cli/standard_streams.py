"""Standard input, output and error as the command needs them, whatever it was started with.

A reader that has seen enough (``| head -1``) is no failure: a run goes on, writes its record, and
exits as it would have. A disk that is full is one.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_INPUT, _OUTPUT, _ERROR = range(3)


class _Unread(io.FileIO):
    """A descriptor; what is written after its reader is gone goes nowhere."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write, and take a closed pipe for one that takes everything."""
        try:
            written = super().write(data)
        except BrokenPipeError:
            discard_output(self.fileno())
            written = super().write(data)
        return written


class _LastResort(_Unread):
    """The descriptor that errors are told on; one that cannot be told is told to nobody."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write, and give up for good what cannot be written."""
        try:
            written = super().write(data)
        except OSError:  # a full disk, say; what the command ends with says the rest
            discard_output(self.fileno())
            written = super().write(data)
        return written


def prepare_streams() -> None:
    """See that there are three streams, and that the two for output take any text.

    A stream that was closed (``>&-``) would give its number to the next file that is opened, and
    what is printed would be written into that.
    """
    for number in (_INPUT, _OUTPUT, _ERROR):
        try:
            os.fstat(number)
        except OSError:
            discard_output(number)
    encoding = "utf-8" if sys.stderr is None else sys.stderr.encoding
    sys.stderr = _text(_LastResort(_ERROR, "w", closefd=False), encoding, line_buffering=True)
    given = sys.stdout
    if given is None:
        sys.stdout = _text(_output(), "utf-8", line_buffering=False)
    else:
        given.flush()
        sys.stdout = _text(_output(), given.encoding, line_buffering=given.isatty())


def discard_output(number: int = _OUTPUT) -> None:
    """Let everything that is written to a descriptor from now on go nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere == number:
        os.set_inheritable(number, True)
    else:
        os.dup2(nowhere, number)
        os.close(nowhere)


def _output() -> io.FileIO:
    return _Unread(_OUTPUT, "w", closefd=False)


def _text(raw: io.FileIO, encoding: str, *, line_buffering: bool) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=line_buffering,
    )
