"""What only the file store has: the order of system calls, torn and flipped files, the lock."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import threading
from typing import TYPE_CHECKING

import pytest

from worker_under_test.checkpoint import (
    Committer,
    DamagedRecordError,
    NotFound,
    SeqGate,
    Snapshot,
    StaleSeq,
)
from worker_under_test.checkpoint.stores.file import FileStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RUN = "run"


def snapshot(seq: int, *done: str, run_id: str = RUN) -> Snapshot:
    """Return a snapshot."""
    return Snapshot(run_id, seq, "running", done, {"key": "värde"})


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    """Return a store that holds snapshot 5."""
    made = FileStore(tmp_path)
    asyncio.run(made.save(snapshot(5, "a")))
    return made


@pytest.fixture
def record(store: FileStore, tmp_path: Path) -> Path:
    """Return the file of snapshot 5."""
    (path,) = tmp_path.glob("*.json")
    return path


class Calls:
    """Notes the calls that make a write durable, and fails one of them on demand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[str] = []
        self.failing = ""
        self._names: dict[int, str] = {}
        self._patch = monkeypatch
        self._wrap("open", lambda path, *_, **__: f"open {self._short(path)}")
        self._wrap("fsync", lambda fd: f"fsync {self._names.get(fd, '?')}")
        self._wrap("replace", lambda source, target, **_: f"rename to {self._short(target)}")

    @staticmethod
    def _short(path: object) -> str:
        kind = str(path).rpartition(".")[2]
        return kind if kind in ("json", "lock", "tmp") else "folder"

    def _wrap(self, name: str, describe: Callable[..., str]) -> None:
        real: Callable[..., object] = getattr(os, name)

        def wrapped(*args: object, **kwargs: object) -> object:
            text = describe(*args, **kwargs)
            self.seen.append(text)
            if text == self.failing:
                raise OSError(5, f"{text} failed")
            result = real(*args, **kwargs)
            if name == "open" and isinstance(result, int):
                self._names[result] = text.removeprefix("open ")
            return result

        self._patch.setattr(os, name, wrapped)


@pytest.mark.requirement("STO-17", "STO-18", "STO-19")
def test_order_of_calls(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Content is synced first, then the name, then the directory, under the lock."""
    calls = Calls(monkeypatch)
    asyncio.run(store.save_if_newer(snapshot(6)))
    assert calls.seen == [
        "open folder",
        "open lock",
        "open json",
        "open tmp",
        "fsync tmp",
        "rename to json",
        "fsync folder",
    ]


@pytest.mark.requirement("STO-18", "STO-19")
def test_an_answer_about_another_write_is_synced(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load, a repetition and a refusal speak of a rename that is on disk."""
    calls = Calls(monkeypatch)
    asyncio.run(store.load(RUN))
    asyncio.run(store.save(snapshot(5, "a")))
    with pytest.raises(StaleSeq):
        asyncio.run(store.save_if_newer(snapshot(4)))
    assert [call for call in calls.seen if call != "open lock"] == [
        *("open folder", "open json", "fsync folder"),
        *("open folder", "open json", "fsync folder"),
        *("open folder", "open json", "fsync folder"),
    ]


@pytest.mark.requirement("STO-17", "STO-21", "COM-11", "COM-15")
@pytest.mark.parametrize(
    ("failing", "landed"),
    [
        ("open folder", False),
        ("open lock", False),
        ("open tmp", False),
        ("fsync tmp", False),
        ("rename to json", False),
        ("fsync folder", True),
    ],
)
def test_a_failing_call(
    store: FileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, *, landed: bool
) -> None:
    """After any call fails it is old or new, nothing is left over, and the number is free."""

    def left_over() -> list[Path]:
        return list(tmp_path.glob("*.tmp"))

    async def scenario() -> None:
        committer = Committer(SeqGate(), store)
        await committer.seed_from_store(RUN)
        with monkeypatch.context() as patch:
            Calls(patch).failing = failing
            with pytest.raises(OSError, match=failing):
                await committer.commit(snapshot(6, "a", "b"))
        assert committer.last(RUN) == 5
        expected = snapshot(6, "a", "b") if landed else snapshot(5, "a")
        assert await store.load(RUN) == expected
        assert left_over() == []
        await committer.commit(snapshot(7, "a", "b"))
        assert (await store.load(RUN)).seq == 7

    asyncio.run(scenario())


@pytest.mark.requirement("STO-17")
def test_a_torn_temporary_file_is_ignored(store: FileStore, record: Path) -> None:
    """What a killed writer left is neither read nor in the way."""
    temporary = record.with_name(f"{record.name}.tmp")
    temporary.write_bytes(record.read_bytes()[:40] * 100)
    assert asyncio.run(store.load(RUN)) == snapshot(5, "a")
    asyncio.run(store.save_if_newer(snapshot(6)))
    assert asyncio.run(store.load(RUN)) == snapshot(6)
    assert not temporary.exists()


@pytest.mark.requirement("STO-22")
def test_every_flipped_bit_is_noticed(store: FileStore, record: Path) -> None:
    """No single bit of a record can change without a DamagedRecordError."""
    content = record.read_bytes()
    for position in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[position] ^= 1 << bit
            record.write_bytes(flipped)
            with pytest.raises(DamagedRecordError):
                store._load_now(RUN)
    record.write_bytes(content)
    assert store._load_now(RUN) == snapshot(5, "a")


@pytest.mark.requirement("STO-17", "STO-22")
def test_every_torn_record_is_noticed(store: FileStore, record: Path) -> None:
    """A record cut short, to nothing included, is damaged and not missing."""
    content = record.read_bytes()
    assert content
    for length in range(len(content)):
        record.write_bytes(content[:length])
        with pytest.raises(DamagedRecordError):
            store._load_now(RUN)


@pytest.mark.requirement("STO-22", "ERR-05", "COM-22")
@pytest.mark.parametrize(
    "change",
    [
        {"run_id": "other"},
        {"seq": 6},
        {"seq": 5.0},
        {"seq": True},
        {"status": "completed"},
        {"status": None},
        {"done": ["b"]},
        {"done": "a"},
        {"done": [["a"]]},
        {"fields": {}},
        {"fields": []},
        {"checksum": None},
        {"extra": 1},
    ],
    ids=str,
)
def test_a_changed_record_is_damaged(
    store: FileStore, record: Path, change: dict[str, object]
) -> None:
    """No part can be changed; seeding and saving on top fail as well."""
    record.write_text(json.dumps({**json.loads(record.read_bytes()), **change}))
    evidence = record.read_bytes()

    async def scenario() -> None:
        committer = Committer(SeqGate(), store)
        with pytest.raises(DamagedRecordError):
            await store.load(RUN)
        with pytest.raises(DamagedRecordError):
            await committer.seed_from_store(RUN)
        for save in (store.save, store.save_if_newer):
            with pytest.raises(DamagedRecordError):
                await save(snapshot(9))
        assert committer.last(RUN) == 0

    asyncio.run(scenario())
    assert record.read_bytes() == evidence


@pytest.mark.requirement("STO-05", "STO-20", "STO-22")
def test_another_runs_file_is_damage(store: FileStore, record: Path) -> None:
    """A record under another run's name does not become that run's."""
    asyncio.run(store.save(snapshot(1, run_id="other")))
    (other,) = set(record.parent.glob("*.json")) - {record}
    shutil.copy(record, other)
    with pytest.raises(DamagedRecordError, match="'other'"):
        asyncio.run(store.load("other"))


@pytest.mark.requirement("ERR-05", "ORC-03", "STO-04")
def test_a_missing_directory_is_not_a_first_run(store: FileStore, tmp_path: Path) -> None:
    """A volume that is not mounted does not say "never ran"."""
    shutil.rmtree(tmp_path)
    for call in (store.load(RUN), store.save(snapshot(6)), store.save_if_newer(snapshot(6))):
        with pytest.raises(FileNotFoundError):
            asyncio.run(call)
    tmp_path.mkdir()
    with pytest.raises(NotFound):
        asyncio.run(store.load(RUN))


@pytest.mark.requirement("COM-11", "COM-15", "STO-06")
def test_the_lock_is_waited_for_in_time(store: FileStore, record: Path) -> None:
    """A holder that does not let go is an error in time, and no write."""
    impatient = FileStore(record.parent, lock_timeout_s=0.01)
    lock = os.open(record.with_name(f"{record.name}.lock"), os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(TimeoutError, match=r"waited 0\.01 s"):
            asyncio.run(impatient.save_if_newer(snapshot(6)))
        assert asyncio.run(impatient.load(RUN)) == snapshot(5, "a")
        asyncio.run(impatient.save_if_newer(snapshot(1, run_id="other")))
    finally:
        os.close(lock)
    asyncio.run(impatient.save_if_newer(snapshot(6)))


@pytest.mark.requirement("COM-26", "STO-17")
def test_a_cancelled_save_waits_for_its_thread(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cancellation arrives when the write has ended, however often repeated.

    Otherwise a plain save of 6 could land after one of 7.
    """
    writing, go_on = threading.Event(), threading.Event()
    real_replace = os.replace

    def slow_replace(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        writing.set()
        assert go_on.wait(timeout=30)
        real_replace(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "replace", slow_replace)

    async def scenario() -> None:
        task = asyncio.create_task(store.save(snapshot(6)))
        await asyncio.to_thread(writing.wait)
        for _ in range(3):
            task.cancel()
            done, _ = await asyncio.wait({task}, timeout=0.01)
            assert not done
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await store.load(RUN) == snapshot(6)

    asyncio.run(scenario())
