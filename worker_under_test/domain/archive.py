"""What a ZIP archive may hold, and what it holds: checked before anything is written."""

from __future__ import annotations

import io
import re
import stat
import unicodedata
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import PurePosixPath

from worker_under_test.domain.artifact import check_file_name
from worker_under_test.domain.errors import DomainError, Kind

_READ_BYTES = 1 << 16
_ENCRYPTED = 0x1
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_DRIVE = re.compile(r"[A-Za-z]:")
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
    OSError,
)
"""What `zipfile` raises for bytes that are not an archive."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much an archive may hold; exactly so much passes (ZIP-05).

    Attributes:
        archive_bytes: Its own size.
        total_bytes: What its files come to, counted while they are unpacked.
        entries: How many entries, directories too.
        ratio: How many times larger than packed an entry may be.
        depth: How many names a path may have.
    """

    archive_bytes: int = 8 << 20
    total_bytes: int = 16 << 20
    entries: int = 1000
    ratio: int = 200
    depth: int = 16


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a checked archive.

    Attributes:
        path: Relative, with ``/``, no way out of the tree.
        data: Its content; None for a directory.
    """

    path: str
    data: bytes | None


def read_archive(archive: bytes, limits: Limits) -> list[Entry]:
    """Check an archive and unpack it in memory, where it can do no harm (ZIP-01, ZIP-02, ZIP-06).

    Modes and times are not taken over. An archive in the archive is a file like any other.

    Args:
        archive: Its bytes.
        limits: How much it may hold.

    Returns:
        Its entries, in their order.

    Raises:
        DomainError: Of kind invalid, with the reason: it is refused as a whole.
    """
    if len(archive) > limits.archive_bytes:
        raise _refused(f"it is larger than {limits.archive_bytes} bytes")
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            infos = opened.infolist()
            _check_declared(infos, limits)
            return _unpacked(opened, infos, limits)
    except _BROKEN as error:
        raise _refused(f"it cannot be read: {type(error).__name__}: {error}") from error


def _check_declared(infos: list[zipfile.ZipInfo], limits: Limits) -> None:
    if len(infos) > limits.entries:
        raise _refused(f"it has more than {limits.entries} entries")
    if sum(info.file_size for info in infos) > limits.total_bytes:
        raise _refused(f"its files come to more than {limits.total_bytes} bytes")
    taken: dict[str, bool] = {}
    for info in infos:
        _check_entry(info, limits)
        _take_place(taken, info, limits)


def _check_entry(info: zipfile.ZipInfo, limits: Limits) -> None:
    shown = info.orig_filename[:100]
    if info.flag_bits & _ENCRYPTED:
        raise _refused(f"{shown!r} is encrypted")
    if info.compress_type not in _METHODS:
        raise _refused(f"{shown!r} is packed by a method that is not taken")
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise _refused(f"{shown!r} is a link or a special file")
    if (kind == stat.S_IFDIR) != info.is_dir() and kind:
        raise _refused(f"{shown!r} says that it is a file and a directory")
    if info.is_dir() and info.file_size:
        raise _refused(f"directory {shown!r} has content")
    if info.file_size > limits.ratio * max(info.compress_size, 1):
        raise _refused(f"{shown!r} is packed more than {limits.ratio} times")


def _take_place(taken: dict[str, bool], info: zipfile.ZipInfo, limits: Limits) -> None:
    """Refuse two entries that would stand at one place on any file system."""
    path = _path_of(info, limits)
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
    for parent in list(PurePosixPath(folded).parents)[:-1]:
        if taken.setdefault(str(parent), True) is False:
            raise _refused(f"{path!r} is below a file")
    if info.is_dir() and taken.get(folded) is True and f"{folded}/" not in taken:
        taken[f"{folded}/"] = True
        return
    if folded in taken:
        raise _refused(f"{path!r} is there twice, if only in other letters")
    taken[folded] = info.is_dir()
    if info.is_dir():
        taken[f"{folded}/"] = True


def _path_of(info: zipfile.ZipInfo, limits: Limits) -> str:
    # The original name: zipfile cuts the other one at a NUL.
    name = info.orig_filename
    path = name.removesuffix("/")
    if name.startswith("/") or "\\" in name or "\0" in name or _DRIVE.match(name):
        raise _refused(f"{name[:100]!r} is not a path inside the tree")
    names = path.split("/")
    if len(names) > limits.depth:
        raise _refused(f"{name[:100]!r} is deeper than {limits.depth} names")
    for each in names:
        try:
            check_file_name(each)
        except DomainError as error:
            raise _refused(f"{name[:100]!r}: {error.message}") from error
    return path


def _unpacked(opened: zipfile.ZipFile, infos: list[zipfile.ZipInfo], limits: Limits) -> list[Entry]:
    left = limits.total_bytes
    entries = []
    for info in infos:
        if info.is_dir():
            entries.append(Entry(_path_of(info, limits), None))
            continue
        data = bytearray()
        with opened.open(info) as file:
            while piece := file.read(_READ_BYTES):
                data += piece
                left -= len(piece)
                # A header may lie: what counts is what comes out.
                if left < 0:
                    raise _refused(f"its files come to more than {limits.total_bytes} bytes")
        if len(data) != info.file_size:
            raise _refused(f"{info.filename[:100]!r} has not the size that it says")
        entries.append(Entry(_path_of(info, limits), bytes(data)))
    return entries


def _refused(why: str) -> DomainError:
    return DomainError(Kind.INVALID, f"the archive is refused: {why}")
