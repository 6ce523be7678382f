"""A transfer on real files: what it believes of what an earlier life left."""

from __future__ import annotations

import asyncio
import hashlib
import re
from typing import TYPE_CHECKING

import pytest

import harness.points
from worker_under_test.adapters.local_file_space import LocalFileSpace
from worker_under_test.adapters.system_clock import SystemClock
from worker_under_test.capabilities.transfer import PIECE_BYTES, Transfer
from worker_under_test.domain.command import Command
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.progress import Checkpoint
from worker_under_test.ports.remote import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from worker_under_test.domain.event import AttemptEvent
    from worker_under_test.domain.json_value import JsonObject
    from worker_under_test.domain.progress import Progress

OLD = bytes(range(256)) * 900
NEW = OLD[::-1][:-7]
TEMPORARY = "artifacts/t1/f.attempt-1.tmp"


class CrashError(BaseException):
    """Stands for a crash."""


class Source:
    """A file server of one file, in memory."""

    def __init__(self, content: bytes = OLD) -> None:
        self.content = content
        self.sent = 0

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: JsonObject | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Give the part that is asked for, or all if the file is another by now."""
        etag = f'"{hashlib.sha256(self.content).hexdigest()[:8]}"'
        size = len(self.content)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", (headers or {})["Range"])
        assert wanted is not None
        if (headers or {}).get("If-Range", etag) != etag:
            self.sent += size
            return Reply(200, self.content, {"etag": etag, "content-length": str(size)})
        start, stop = int(wanted[1]), min(int(wanted[2]) + 1, size)
        self.sent += stop - start
        told = {"etag": etag, "content-range": f"bytes {start}-{stop - 1}/{size}"}
        return Reply(206, self.content[start:stop], told)


class Lines:
    """A `ProgressReporter` that keeps the last checkpoint, over lives."""

    attempt_id = "attempt-1"
    cancelled = False
    checkpoint: Checkpoint | None = None

    async def __call__(self, progress: Progress, evidence: JsonObject | None = None) -> None:
        """Keep a report."""
        seq = self.checkpoint.seq if self.checkpoint else 0
        self.checkpoint = Checkpoint(seq + 1, progress.to_json(), evidence or {})


def transfer(root: Path, source: Source, lines: Lines, sha256: str = "") -> AttemptEvent | None:
    """Run a transfer."""
    work = Transfer(LocalFileSpace(root), source, SystemClock())
    command = Command("t1", "transfer", 1, {"name": "f", "sha256": sha256})
    return asyncio.run(work.execute(command, lines))


def crash(
    root: Path, source: Source, monkeypatch: pytest.MonkeyPatch, label: str, nth: int
) -> Lines:
    """Run a transfer that crashes at the nth hit of a point."""
    hits = []

    def hook(hit: str, context: dict[str, object]) -> None:
        hits.append(hit)
        if hits.count(label) == nth:
            raise CrashError

    lines = Lines()
    with monkeypatch.context() as patch:
        patch.setattr(harness.points, "_hook", hook)
        with pytest.raises(CrashError):
            transfer(root, source, lines)
    return lines


def published(root: Path) -> bytes:
    """Read the file, which is all that there is."""
    (path,) = (each for each in root.rglob("*") if each.is_file())
    assert path == root / "artifacts/t1/f"
    return path.read_bytes()


def leave(_data: bytes) -> bytes:
    """Do no damage."""
    return _data


def cut(data: bytes) -> bytes:
    """Lose the end, as a power loss does."""
    return data[: PIECE_BYTES + 100]


def lengthen(data: bytes) -> bytes:
    """Have more than was recorded."""
    return data + b"?" * 1000


def flip(data: bytes) -> bytes:
    """Flip a bit of the second piece."""
    return data[:PIECE_BYTES] + bytes([data[PIECE_BYTES] ^ 1]) + data[PIECE_BYTES + 1 :]


def lose(_data: bytes) -> bytes:
    """Lose all."""
    return b""


@pytest.mark.requirement("REC-04..REC-07", "FIL-01", "FIL-05")
@pytest.mark.parametrize(
    ("damage", "kept"),
    [(leave, 2), (lengthen, 2), (cut, 1), (flip, 1), (lose, 0)],
)
def test_it_goes_on_from_what_is_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[bytes], bytes], kept: int
) -> None:
    """A partial file may be shorter, longer, wrong or lost; the bytes sent are counted."""
    source = Source()
    lines = crash(tmp_path, source, monkeypatch, "transfer.request.before", 3)
    path = tmp_path / TEMPORARY
    path.write_bytes(damage(path.read_bytes()))
    source.sent = 0
    event = transfer(tmp_path, source, lines)
    assert event is not None
    assert event.body["sha256"] == hashlib.sha256(OLD).hexdigest()
    assert published(tmp_path) == OLD
    assert source.sent == len(OLD) - kept * PIECE_BYTES


@pytest.mark.requirement("REC-06", "CP-G3")
def test_bytes_that_no_record_names_are_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that were written without a saved offset are fetched again."""
    source = Source()
    lines = crash(tmp_path, source, monkeypatch, "transfer.offset.before", 2)
    source.sent = 0
    transfer(tmp_path, source, lines)
    assert published(tmp_path) == OLD
    assert source.sent == len(OLD) - PIECE_BYTES


@pytest.mark.requirement("REC-08")
def test_a_source_that_changed_is_fetched_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed source never puts two versions into one file."""
    source = Source()
    lines = crash(tmp_path, source, monkeypatch, "transfer.request.before", 3)
    source.content = NEW
    event = transfer(tmp_path, source, lines)
    assert event is not None
    assert event.body["sha256"] == hashlib.sha256(NEW).hexdigest()
    assert published(tmp_path) == NEW


@pytest.mark.requirement("CP-G5", "FIL-02")
def test_a_published_file_is_adopted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A published file is known by its checksum, and nothing is fetched."""
    source = Source()
    lines = crash(tmp_path, source, monkeypatch, "directory.sync.after", 1)
    source.sent = 0
    assert transfer(tmp_path, source, lines) is not None
    assert published(tmp_path) == OLD
    assert source.sent == 0


@pytest.mark.requirement("FIL-06", "FIL-07")
def test_the_temporary_file_of_another_attempt_is_not_taken(tmp_path: Path) -> None:
    """Another attempt's temporary file is neither taken nor overwritten."""
    other = tmp_path / "artifacts/t1/f.attempt-0.tmp"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"other")
    transfer(tmp_path, Source(), Lines())
    assert other.read_bytes() == b"other"
    assert (tmp_path / "artifacts/t1/f").read_bytes() == OLD


@pytest.mark.requirement("REC-16")
def test_evidence_that_makes_no_sense_counts_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the evidence makes no sense, everything is fetched."""
    source = Source()
    lines = crash(tmp_path, source, monkeypatch, "transfer.request.before", 3)
    for evidence in ({}, {"etag": 1}, {"etag": "", "size": 1, "marks": [[1]], "sha256": ""}):
        lines.checkpoint = Checkpoint(1, {}, evidence)  # type: ignore[arg-type]
        source.sent = 0
        transfer(tmp_path, source, lines)
        assert source.sent == len(OLD)
        (tmp_path / "artifacts/t1/f").unlink()


@pytest.mark.requirement("REC-07", "FIL-09")
def test_a_source_that_is_not_the_one_wanted_is_not_published(tmp_path: Path) -> None:
    """The attempt fails and nothing is left."""
    with pytest.raises(DomainError) as refusal:
        transfer(tmp_path, Source(), Lines(), sha256=hashlib.sha256(NEW).hexdigest())
    assert refusal.value.kind is Kind.CONFLICT
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.requirement("REC-04")
def test_an_empty_source_is_a_file(tmp_path: Path) -> None:
    """An empty source gives an empty file."""

    class Empty(Source):
        async def request(self, method: str, path: str, **given: object) -> Reply:
            return Reply(416, b"", {"etag": '"0"', "content-range": "bytes */0"})

    assert transfer(tmp_path, Empty(), Lines()) is not None
    assert published(tmp_path) == b""
