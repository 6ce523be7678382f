"""Malformed archives: refused with a reason, and nothing of them is left."""

from __future__ import annotations

import asyncio
import io
import stat
import struct
import zipfile
from typing import TYPE_CHECKING

import pytest
from malformed_doubles import NoTime, Saving
from network_doubles import FakeRemote

from worker_under_test.adapters.local_tree_space import LocalTreeSpace
from worker_under_test.capabilities.unpack import Unpack
from worker_under_test.domain.archive import Limits, read_archive
from worker_under_test.domain.command import Command
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.ports.remote import Reply

if TYPE_CHECKING:
    from pathlib import Path

LIMITS = Limits(archive_bytes=100_000, total_bytes=1000, entries=5, ratio=20, depth=4)


def zipped(
    *entries: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_STORED
) -> bytes:
    """Return an archive."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", method) as made:
        for name, data in entries:
            if isinstance(name, zipfile.ZipInfo):
                made.writestr(name, data)
            else:
                made.writestr(zipfile.ZipInfo(name), data, method)
    return held.getvalue()


def moded(name: str, mode: int) -> zipfile.ZipInfo:
    """Return an entry with a mode."""
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


def patched(archive: bytes, old: bytes, new: bytes) -> bytes:
    """Return an archive with some bytes changed, in headers and directory."""
    assert old in archive
    return archive.replace(old, new)


def lying(declared: int, data: bytes) -> bytes:
    """Return an archive whose headers name another size than there is."""
    return patched(
        zipped(("a", data), method=zipfile.ZIP_DEFLATED),
        struct.pack("<I", len(data)),
        struct.pack("<I", declared),
    )


GOOD = zipped(("a", b"alpha"), ("d/b", b"beta"))
BAD_NAMES = (
    "../x",
    "a/../../x",
    "/abs",
    "C:/x",
    "c:x",
    "a\\b",
    "..\\x",
    "a/./b",
    "a//b",
    "..",
    ".",
    "./x",
    "a\x01b",
    "a/..",
    ".hidden",
    "x.tmp",
    "n" * 101,
    "a/b/c/d/e",
    "\u202ex",
    "a\nb",
    " /../x",
    "//x",
)
ARCHIVES: dict[str, bytes] = {
    **{f"name {name!r}": zipped((name, b"x")) for name in BAD_NAMES},
    "NUL": patched(zipped(("aXb", b"x")), b"aXb", b"a\0b"),
    "empty": b"",
    "text": b"no archive at all",
    "half": GOOD[: len(GOOD) // 2],
    "no end": GOOD[:-22],
    "no last byte of the directory": GOOD[:-23] + GOOD[-22:],
    "wrong checksum": patched(GOOD, b"alpha", b"aloha"),
    "symlink": zipped((moded("l", stat.S_IFLNK | 0o777), b"/etc/passwd")),
    "symlink and a file through it": zipped(
        (moded("l", stat.S_IFLNK | 0o777), b".."), ("l/x", b"x")
    ),
    "fifo": zipped((moded("f", stat.S_IFIFO | 0o644), b"")),
    "device": zipped((moded("f", stat.S_IFCHR | 0o644), b"")),
    "socket": zipped((moded("f", stat.S_IFSOCK | 0o644), b"")),
    "file that says it is a directory": zipped((moded("f", stat.S_IFDIR | 0o755), b"")),
    "directory with content": zipped((moded("d/", stat.S_IFDIR | 0o755), b"x")),
    "case clash": zipped(("A.txt", b"x"), ("a.TXT", b"y")),
    "form clash": zipped(("\u00e9", b"x"), ("e\u0301", b"y")),
    "file, then below it": zipped(("a", b"x"), ("a/b", b"y")),
    "below it, then file": zipped(("a/b", b"x"), ("a", b"y")),
    "directory clash": zipped(("d/", b""), ("D/", b"")),
    "one byte too much": zipped(("a", b"x" * 600), ("b", b"y" * 401)),
    "one entry too much": zipped(*((f"f{n}", b"") for n in range(6))),
    "packed too well": zipped(("a", b"\0" * 1000), method=zipfile.ZIP_DEFLATED),
    "declares too little": lying(10, bytes(range(250)) * 2),
    "declares too much": lying(900, bytes(range(250)) * 2),
    "too large itself": zipped(("a", b"x")) + b"\0" * 100_001,
    "bzip2": zipped(("a", b"x" * 50), method=zipfile.ZIP_BZIP2),
    "lzma": zipped(("a", b"x" * 50), method=zipfile.ZIP_LZMA),
    "encrypted": patched(
        patched(zipped(("a", b"x")), b"PK\x03\x04\x14\0\0\0", b"PK\x03\x04\x14\0\x01\0"),
        b"PK\x01\x02\x14\x03\x14\0\0\0",
        b"PK\x01\x02\x14\x03\x14\0\x01\0",
    ),
}


@pytest.mark.requirement("ZIP-01..ZIP-06", "ATT-08", "INV-12")
@pytest.mark.parametrize("case", ARCHIVES)
def test_a_bad_archive_is_refused_as_a_whole_and_leaves_nothing(tmp_path: Path, case: str) -> None:
    """It is refused with a reason, and nothing is left in the set or outside."""
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "bad.zip").write_bytes(ARCHIVES[case])
    trees = LocalTreeSpace(tmp_path / "files", tmp_path / "inputs")
    work = Unpack(trees, FakeRemote(), NoTime(), LIMITS)
    with pytest.raises(DomainError, match="the archive is refused: ") as refusal:
        asyncio.run(work.execute(Command("u1", "unpack", 1, {"input": "bad.zip"}), Saving()))
    assert refusal.value.kind is Kind.INVALID
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["bad.zip", "inputs"]


@pytest.mark.requirement("ZIP-05")
def test_exactly_the_limits_pass() -> None:
    """Total, entries, ratio and depth pass exactly at the limit, and no further."""
    assert len(read_archive(zipped(("a", b"x" * 600), ("b", b"y" * 400)), LIMITS)) == 2
    assert len(read_archive(zipped(*((f"f{n}", b"") for n in range(5))), LIMITS)) == 5
    assert read_archive(zipped(("a/b/c/d", b"")), LIMITS)[0].path == "a/b/c/d"
    packed = zipped(("a", b"\0" * 1000), method=zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(io.BytesIO(packed)) as opened:
        size = opened.infolist()[0].compress_size
    exact = Limits(ratio=1000 // size) if 1000 % size == 0 else Limits(ratio=1000 // size + 1)
    assert read_archive(packed, exact)[0].data == b"\0" * 1000
    with pytest.raises(DomainError, match="packed more"):
        read_archive(packed, Limits(ratio=(1000 - 1) // size))


@pytest.mark.requirement("ZIP-04", "REC-11")
def test_an_archive_that_is_cut_is_fetched_again_with_growing_waits(tmp_path: Path) -> None:
    """What was cut is no bad archive, and the file server is not hammered."""
    remote, clock = FakeRemote(), NoTime()
    remote.answer(
        "GET", "/files/a.zip", *[Reply(200, GOOD[:50], whole=False)] * 3, Reply(200, GOOD)
    )
    work = Unpack(LocalTreeSpace(tmp_path / "files", tmp_path / "inputs"), remote, clock, LIMITS)
    event = asyncio.run(work.execute(Command("u1", "unpack", 1, {"archive": "a.zip"}), Saving()))
    assert event is not None
    assert event.body["entries"] == ["a", "d/b"]
    assert clock.slept == [1, 2, 4]


@pytest.mark.requirement("ZIP-02", "ZIP-04")
def test_an_archive_that_is_too_large_to_be_read_whole_is_refused(tmp_path: Path) -> None:
    """It is refused at once and not asked for again."""
    remote = FakeRemote()
    remote.answer("GET", "/files/a.zip", Reply(200, b"x" * 100_001, whole=False))
    work = Unpack(LocalTreeSpace(tmp_path / "files", tmp_path / "inputs"), remote, NoTime(), LIMITS)
    with pytest.raises(DomainError, match="it is larger than"):
        asyncio.run(work.execute(Command("u1", "unpack", 1, {"archive": "a.zip"}), Saving()))
    assert remote.times("GET", "/files/a.zip") == 1


def test_there_are_so_many() -> None:
    """The cases are counted, so that none is lost from the list."""
    assert len(ARCHIVES) == 50
