"""A store in a directory, one file per run."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from worker_under_test.checkpoint.errors import DamagedRecordError, NotFound
from worker_under_test.checkpoint.stores.record import checksum, parse, restore, to_json
from worker_under_test.checkpoint.stores.rules import (
    is_repetition,
    require_newer,
    require_writable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from worker_under_test.checkpoint.snapshot import Snapshot

T = TypeVar("T")

_KEYS = frozenset({"run_id", "seq", "status", "done", "fields", "checksum"})
_POLL_INTERVAL_S = 0.001


class FileStore:
    """Snapshots as JSON files, replaced as a whole.

    A save writes a temporary file, syncs it, renames it over the old one and syncs the directory,
    so a reader finds the old record or the new one, also after a crash or power loss (STO-17).
    Comparison and replacement happen under a lock that excludes other threads and processes and
    that the kernel drops when its holder dies.

    It is both a `Store` and a `StoreCAS`, and may be shared by threads and event loops. A file name
    is the SHA-256 of the run id, so any id will do.

    Args:
        directory: An existing directory on a local file system, used for nothing else.
        lock_timeout_s: How long a save waits for another one of the same run, in seconds; then it
            raises ``TimeoutError`` and has written nothing.
    """

    def __init__(self, directory: Path, *, lock_timeout_s: float = 5.0) -> None:
        self._directory = directory
        self._lock_timeout_s = lock_timeout_s

    async def save(self, snapshot: Snapshot) -> None:
        """Save a snapshot (see `Store.save`).

        Args:
            snapshot: The snapshot; its present content is written.

        Raises:
            StaleSeq: Its number is 0.
            ConflictingSnapshotError: Other content is stored under this number.
            InvalidSnapshotError: It cannot be stored.
            DamagedRecordError: The record in its place is damaged; it is left as evidence.
            OSError: The file system failed; whether the snapshot landed is open.
        """
        await self._save(snapshot, only_newer=False)

    async def save_if_newer(self, snapshot: Snapshot) -> None:
        """Save a snapshot if it is newer (see `StoreCAS.save_if_newer`).

        Args:
            snapshot: The snapshot; its present content is written.

        Raises:
            StaleSeq: An equal or higher number is stored, or the number is 0.
            InvalidSnapshotError: It cannot be stored.
            DamagedRecordError: The record in its place is damaged, so its number is unknown.
            OSError: The file system failed; whether the snapshot landed is open.
        """
        await self._save(snapshot, only_newer=True)

    async def load(self, run_id: str) -> Snapshot:
        """Return the stored snapshot.

        Args:
            run_id: The run.

        Raises:
            NotFound: There is none.
            DamagedRecordError: The file is not what was written.
            OSError: The file system failed. A missing directory is such a failure: it does not
                say that the run never ran (ERR-05).
        """
        return await _to_its_end(lambda: self._load_now(run_id))

    async def _save(self, snapshot: Snapshot, *, only_newer: bool) -> None:
        require_writable(snapshot)
        snapshot = snapshot.clone()
        await _to_its_end(lambda: self._save_now(snapshot, only_newer=only_newer))

    def _save_now(self, snapshot: Snapshot, *, only_newer: bool) -> None:
        name = _file_name(snapshot.run_id)
        with self._folder() as folder, self._locked(folder, name):
            stored = _read(folder, name, snapshot.run_id)
            if stored is not None and stored.seq >= snapshot.seq:
                # The answer will be that this one or a newer one has landed, and the writer of
                # that may have died between its rename and its sync.
                os.fsync(folder)
            if only_newer:
                require_newer(stored, snapshot)
            elif is_repetition(stored, snapshot):
                return
            _replace(folder, name, _to_bytes(snapshot))

    def _load_now(self, run_id: str) -> Snapshot:
        with self._folder() as folder:
            snapshot = _read(folder, _file_name(run_id), run_id)
            if snapshot is None:
                raise NotFound(f"run {run_id!r}")
            # Whoever acts on this must not have it undone by power loss.
            os.fsync(folder)
            return snapshot

    @contextmanager
    def _folder(self) -> Iterator[int]:
        # Opened each time, and files relative to it: a directory that is gone is an error of its
        # own and never looks like a record that is not there.
        folder = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield folder
        finally:
            os.close(folder)

    @contextmanager
    def _locked(self, folder: int, name: str) -> Iterator[None]:
        # The lock file stays: removing it would let two writers lock two files of one name.
        lock = os.open(f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644, dir_fd=folder)
        deadline = time.monotonic() + self._lock_timeout_s
        try:
            # flock cannot be given a deadline, and its holder may be stopped for any time.
            while not _try_lock(lock):
                if time.monotonic() >= deadline:
                    raise TimeoutError(f"waited {self._lock_timeout_s:g} s for the lock of {name}")
                time.sleep(_POLL_INTERVAL_S)
            yield
        finally:
            os.close(lock)


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _file_name(run_id: str) -> str:
    return f"{hashlib.sha256(run_id.encode(errors='surrogatepass')).hexdigest()}.json"


def _to_bytes(snapshot: Snapshot) -> bytes:
    parts = {
        "run_id": snapshot.run_id,
        "seq": snapshot.seq,
        "status": snapshot.status,
        "done": list(snapshot.done),
        "fields": dict(snapshot.fields),
        "checksum": checksum(snapshot),
    }
    return to_json(parts).encode()


def _read(folder: int, name: str, run_id: str) -> Snapshot | None:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        parts = parse(run_id, file.read())
    if not isinstance(parts, dict) or parts.keys() != _KEYS or parts["run_id"] != run_id:
        raise DamagedRecordError(f"the file of run {run_id!r} is not a record of it")
    return restore(
        run_id,
        seq=parts["seq"],
        status=parts["status"],
        done=parts["done"],
        fields=parts["fields"],
        digest=parts["checksum"],
    )


def _replace(folder: int, name: str, content: bytes) -> None:
    # One name is enough, since the lock is held; what a killed writer left under it is overwritten.
    temporary = f"{name}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, 0o644, dir_fd=folder), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(folder)


async def _to_its_end(call: Callable[[], T]) -> T:
    """Run a blocking call in a thread and, even when cancelled, do not return before it has ended.

    Otherwise a cancelled save could land after its caller has moved on and saved something newer.
    """
    running = asyncio.ensure_future(asyncio.to_thread(call))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({running})
        if not running.cancelled():
            running.exception()  # its error was seen; the cancellation is what the caller is told
        raise
