"""A hundred malformed archives, HTTP replies and children: a clear error each, nothing lost."""

from __future__ import annotations

import asyncio
import io
import stat
import struct
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest
from network_doubles import FakeRemote
from planned_faults import network_failure

from worker_under_test.adapters.local_file_space import LocalFileSpace
from worker_under_test.adapters.local_processes import LocalProcesses
from worker_under_test.adapters.local_tree_space import LocalTreeSpace
from worker_under_test.capabilities.command import RunCommand
from worker_under_test.capabilities.compute import Compute
from worker_under_test.capabilities.notify import Notify
from worker_under_test.capabilities.render import Render
from worker_under_test.capabilities.transfer import Transfer
from worker_under_test.capabilities.unpack import Unpack
from worker_under_test.domain.archive import Limits, read_archive
from worker_under_test.domain.command import Command
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.event import EventKind
from worker_under_test.domain.progress import Checkpoint
from worker_under_test.ports.remote import Reply

if TYPE_CHECKING:
    from pathlib import Path

    from worker_under_test.domain.event import AttemptEvent
    from worker_under_test.domain.json_value import JsonObject, JsonValue
    from worker_under_test.domain.progress import Progress

LIMITS = Limits(archive_bytes=100_000, total_bytes=1000, entries=5, ratio=20, depth=4)


class Saving:
    """A `ProgressReporter` that keeps the last checkpoint."""

    attempt_id = "attempt-1"
    cancelled = False

    def __init__(self, evidence: JsonObject | None = None) -> None:
        self.checkpoint = None if evidence is None else Checkpoint(1, {}, evidence)

    async def __call__(self, progress: Progress, evidence: JsonObject | None = None) -> None:
        """Keep a report."""
        seq = self.checkpoint.seq if self.checkpoint else 0
        self.checkpoint = Checkpoint(seq + 1, progress.to_json(), evidence or {})


class NoTime:
    """A `Clock` on which waits take none."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, delay_s: float) -> None:
        """Note a wait."""
        self.slept.append(delay_s)
        await asyncio.sleep(0)

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        """Wait for the event."""
        await event.wait()


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
    "directory twice": zipped(("d/", b""), ("d/", b""))
    if sys.flags.dev_mode
    else zipped(("d/", b""), ("D/", b"")),
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


@pytest.mark.parametrize("case", ARCHIVES)
def test_a_bad_archive_is_refused_as_a_whole_and_leaves_nothing(tmp_path: Path, case: str) -> None:
    """ZIP-01..ZIP-06, ATT-08, INV-12: with a reason, nothing in the set and nothing outside."""
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "bad.zip").write_bytes(ARCHIVES[case])
    trees = LocalTreeSpace(tmp_path / "files", tmp_path / "inputs")
    work = Unpack(trees, FakeRemote(), NoTime(), LIMITS)
    with pytest.raises(DomainError, match="the archive is refused: ") as refusal:
        asyncio.run(work.execute(Command("u1", "unpack", 1, {"input": "bad.zip"}), Saving()))
    assert refusal.value.kind is Kind.INVALID
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["bad.zip", "inputs"]


def test_exactly_the_limits_pass() -> None:
    """ZIP-05: total, entries, ratio and depth, each exactly, and one more of each is refused."""
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


MALFORMED = (
    Reply(200, b""), Reply(200, b"{"), Reply(200, b"[]"), Reply(200, b"null"), Reply(200, b'"x"'),
    Reply(200, b"\xff\xfe"), Reply(200, b"{}"), Reply(200, b"<html>"), Reply(200, b"[" * 100_000),
    Reply(200, b'{"job_id": 1}'), Reply(200, b'{"job_id": ""}'),
    Reply(200, b'{"job_id"', whole=False), Reply(204, b""),
)  # fmt: skip
CAN: JsonObject = {"idempotent_create": False, "lookup": False}
LOOKS: JsonObject = {
    "request_id": "render-attempt-1",
    "idempotent": False,
    "lookup": True,
    "job_id": "",
}
KNOWS: JsonObject = {**LOOKS, "job_id": "job-1"}
RENDER = Command("r1", "render", 1, {"spec": {"id": "r1"}})
JOBS, JOB = "/render/jobs", "/render/jobs/job-1"


def rendered(remote: FakeRemote, reporter: Saving) -> AttemptEvent:
    """Execute a render."""
    event = asyncio.run(Render(remote, NoTime()).execute(RENDER, reporter))
    assert event is not None
    return event


@pytest.mark.parametrize("reply", MALFORMED[:-1])
def test_a_create_that_is_answered_badly_is_unknown_and_not_sent_again(reply: Reply) -> None:
    """REC-10, UNK-03, UNK-05: no proof that there is no job; what was asked is saved."""
    remote, reporter = FakeRemote(), Saving()
    remote.answer("GET", "/render/capabilities", CAN)
    remote.answer("POST", JOBS, reply)
    event = rendered(remote, reporter)
    assert event.kind is EventKind.UNKNOWN
    assert event.body["reason"]
    assert remote.times("POST", JOBS) == 1
    assert reporter.checkpoint is not None
    assert reporter.checkpoint.evidence["request_id"] == "render-attempt-1"


@pytest.mark.parametrize("reply", MALFORMED)
def test_a_look_up_that_is_answered_badly_is_unknown_and_creates_nothing(reply: Reply) -> None:
    """REC-10, UNK-08: whatever it is, it is not "not found"."""
    remote = FakeRemote()
    remote.answer("GET", JOBS, reply)
    event = rendered(remote, Saving(LOOKS))
    assert event.kind is EventKind.UNKNOWN
    assert event.body["reason"]
    assert remote.times("POST", JOBS) == 0


@pytest.mark.parametrize("reply", [*MALFORMED, Reply(404), Reply(200, b'{"state": "odd"}')])
def test_a_poll_that_is_answered_badly_is_unknown_and_keeps_the_job(reply: Reply) -> None:
    """REC-09, REC-10: the job is named in the event, for the person who looks for it."""
    remote = FakeRemote()
    remote.answer("GET", JOB, reply)
    event = rendered(remote, Saving(KNOWS))
    assert (event.kind, event.body["job_id"]) == (EventKind.UNKNOWN, "job-1")


@pytest.mark.parametrize("reply", [Reply(400), Reply(403), Reply(404), Reply(409), Reply(302)])
def test_a_notification_that_is_refused_fails(reply: Reply) -> None:
    """ATT-08: a refusal is an answer."""
    remote = FakeRemote()
    remote.answer("GET", "/notifications/capabilities", {"honours_keys": False})
    remote.answer("POST", "/notifications", reply)
    command = Command("n1", "notify", 1, {"channel": "n1", "text": "x"})
    event = asyncio.run(Notify(remote, NoTime()).execute(command, Saving()))
    assert event is not None
    assert event.kind is EventKind.FAILED
    assert str(reply.status) in str(event.body["reason"])


ETAG = {"etag": '"1"'}
BAD_PARTS = (
    Reply(404), Reply(206, b"x"), Reply(206, b"x", ETAG), Reply(200, b"x"), Reply(200, b"x", ETAG),
    Reply(206, b"x", {**ETAG, "content-range": "bytes x-y/z"}), Reply(204), Reply(301),
    Reply(206, b"x", {"etag": "W/1", "content-range": "bytes 0-0/1"}), Reply(416),
    Reply(200, b"x", {**ETAG, "content-length": "-1"}),
)  # fmt: skip


@pytest.mark.parametrize("reply", BAD_PARTS)
def test_a_part_that_cannot_be_placed_fails_the_transfer_and_leaves_nothing(
    tmp_path: Path, reply: Reply
) -> None:
    """REC-04, REC-08, FIL-09: an error, and no file."""
    remote = FakeRemote()
    remote.answer("GET", "/files/f", reply)
    work = Transfer(LocalFileSpace(tmp_path), remote, NoTime())
    with pytest.raises(DomainError):
        asyncio.run(work.execute(Command("t1", "transfer", 1, {"name": "f"}), Saving()))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("status", [204, 301, 400, 404, 501])
def test_a_source_that_is_not_given_fails_the_work(status: int) -> None:
    """REC-03: there is no input, and nothing is made up."""
    remote = FakeRemote()
    remote.answer("GET", "/files/f", Reply(status))
    command = Command("c1", "compute", 1, {"source": "f", "rounds": 2})
    with pytest.raises(DomainError, match=str(status)):
        asyncio.run(Compute(remote, NoTime()).execute(command, Saving()))


def test_a_service_that_does_not_answer_is_asked_again_and_nothing_is_submitted() -> None:
    """REC-11: ten rounds of failures, with growing waits, and one job in the end."""
    remote, clock = FakeRemote(), NoTime()
    failures = [network_failure() if n % 2 else Reply(503) for n in range(10)]
    found: JsonObject = {"jobs": [{"job_id": "job-1", "state": "running"}]}
    remote.answer("GET", JOBS, *failures, found)
    remote.answer("GET", JOB, {"state": "succeeded", "result": {"image": "i"}})
    event = asyncio.run(Render(remote, clock).execute(RENDER, Saving(LOOKS)))
    assert event is not None
    assert event.kind is EventKind.SUCCEEDED
    assert remote.times("POST", JOBS) == 0
    assert clock.slept == [1, 2, 4, 8, 16, 30, 30, 30, 30, 30]


BAD_ARGV: tuple[JsonValue, ...] = (
    None, "true", [], [1], [""], ["a\0b"], ["true", None], {"a": 1}, [["true"]], ["x"] * 101,
)  # fmt: skip


@pytest.mark.parametrize("argv", BAD_ARGV)
def test_a_child_that_cannot_be_is_refused(tmp_path: Path, argv: JsonValue) -> None:
    """ATT-08, PRC-01: of kind invalid, before a token is saved."""
    reporter = Saving()
    with pytest.raises(DomainError) as refusal:
        asyncio.run(ran(tmp_path, {"argv": argv}, reporter))
    assert refusal.value.kind is Kind.INVALID
    assert reporter.checkpoint is None


async def ran(root: Path, payload: JsonObject, reporter: Saving) -> AttemptEvent | None:
    """Execute a child."""
    work = RunCommand(LocalProcesses(root / "processes"))
    return await work.execute(Command("p1", "command", 1, payload), reporter)


SHELL = ["/bin/sh", "-c"]
CHILDREN: dict[str, tuple[list[str], EventKind, int | None]] = {
    "exits 1": ([*SHELL, "exit 1"], EventKind.FAILED, 1),
    "exits 255": ([*SHELL, "exit 255"], EventKind.FAILED, 255),
    "is missing": (["/nowhere/at/all"], EventKind.FAILED, 127),
    "is a directory": (["/tmp"], EventKind.FAILED, 126),
    "is killed": ([*SHELL, "kill -9 $$"], EventKind.FAILED, 137),
    "aborts": ([*SHELL, "kill -6 $$"], EventKind.FAILED, 134),
    "kills its keeper": ([*SHELL, "kill -9 $PPID"], EventKind.UNKNOWN, None),
    "writes no text": ([*SHELL, r"printf '\377\0\200'; exit 3"], EventKind.FAILED, 3),
    "writes much": ([*SHELL, "yes | head -c 100000; exit 4"], EventKind.FAILED, 4),
    "closes its output": ([*SHELL, "exec >&-; exit 5"], EventKind.FAILED, 5),
    "reads": (["cat"], EventKind.SUCCEEDED, 0),
}


@pytest.mark.parametrize("case", CHILDREN)
def test_a_child_that_ends_badly_is_told_from_one_that_is_lost(tmp_path: Path, case: str) -> None:
    """PRC-01, PRC-05, ATT-08: an exit code is an answer, no exit code is none."""
    argv, kind, code = CHILDREN[case]
    payload: JsonObject = {"argv": list(argv)}
    event = asyncio.run(ran(tmp_path, payload, Saving()))
    assert event is not None
    assert (event.kind, event.body.get("exit_code")) == (kind, code)


def test_there_are_a_hundred() -> None:
    """Issue: a hundred malformed archives, HTTP replies and child processes."""
    replies = 3 * len(MALFORMED) - 1 + 2 + 5 + len(BAD_PARTS) + 5
    assert len(ARCHIVES) + replies + len(BAD_ARGV) + len(CHILDREN) >= 100
