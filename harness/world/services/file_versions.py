"""Versions of the file server's files, and the range of one that a request gets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.model.errors import UsageError
from harness.world.http_errors import STATUS, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

_RANGE: Final = re.compile(r"bytes=([0-9]{1,18})-([0-9]{1,18})?")
"""Positions that SQLite's integers hold."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that the server has.

    Attributes:
        versions: Its contents, one after the other; a version is named by its number from 1.
        change_after: After so many requests of the file the next version takes its place, and so
            on up to the last.

    Raises:
        UsageError: There is no version, or a second one that is never reached.
    """

    versions: tuple[bytes, ...]
    change_after: int = 0

    def __post_init__(self) -> None:
        if not self.versions:
            raise UsageError("a source file needs a version")
        if self.change_after < (1 if len(self.versions) > 1 else 0):
            raise UsageError(f"a source file does not change after {self.change_after} requests")

    def version_at(self, nth: int) -> int:
        """Return the number of the version that a request sees.

        Args:
            nth: Which request of the file, from 1.
        """
        if self.change_after == 0:
            return 1
        return min((nth - 1) // self.change_after + 1, len(self.versions))


@dataclass(frozen=True, slots=True)
class Part:
    """What a request is given of a file.

    Attributes:
        status: Status of the reply: 200 for the whole, 206 for a part, 416 for no part at all.
        version: Number of the version.
        start: First byte, counted from 0.
        body: The bytes.
        headers: What the reply says of them.
    """

    status: int
    version: int
    start: int
    body: bytes
    headers: Mapping[str, str]


def part_of(file: SourceFile, nth: int, headers: Mapping[str, str]) -> Part:
    """Return what a request is given.

    Args:
        file: Of which file.
        nth: Which request of the file, from 1.
        headers: The request's headers.

    Raises:
        Refused: The header ``Range`` is malformed.
    """
    version = file.version_at(nth)
    content = file.versions[version - 1]
    etag = f'"{version}"'
    said = {"ETag": etag, "Accept-Ranges": "bytes"}
    wanted = wanted_range(headers)
    if wanted is None or headers.get("If-Range", etag).strip() != etag:
        return Part(200, version, 0, content, said)
    start, end = wanted
    size = len(content)
    if start >= size:
        status = STATUS["unsatisfiable"]
        return Part(status, version, start, b"", {**said, "Content-Range": f"bytes */{size}"})
    stop = size if end is None else min(end + 1, size)
    said["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    return Part(206, version, start, content[start:stop], said)


def wanted_range(headers: Mapping[str, str]) -> tuple[int, int | None] | None:
    """Return the first and the last byte that a request asks for, or None if for the whole.

    Args:
        headers: The request's headers.

    Raises:
        Refused: The header ``Range`` is malformed.
    """
    text = headers.get("Range")
    # A unit that is not known must be ignored (RFC 9110, 14.2).
    if text is None or not text.startswith("bytes"):
        return None
    match = _RANGE.fullmatch(text)
    if match is None:
        raise Refused("invalid", "header 'Range' is not bytes=START- or bytes=START-END")
    start, end = int(match[1]), None if match[2] is None else int(match[2])
    if end is not None and end < start:
        raise Refused("invalid", "header 'Range' ends before it starts")
    return start, end
