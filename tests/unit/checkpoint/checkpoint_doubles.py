"""Gates and stores that write down every call, and stores that fail on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_under_test.checkpoint import SeqGate, Snapshot, StoreCAS
from worker_under_test.checkpoint.stores.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Coroutine

RUN = "run"


def snapshot(seq: int, *done: str, status: str = "running") -> Snapshot:
    """Return a snapshot of the run that all tests here share."""
    return Snapshot(RUN, seq, status, done)


def drive(coroutine: Coroutine[object, object, None]) -> None:
    """Run a coroutine that waits for nothing, without an event loop.

    An event loop treats KeyboardInterrupt and its kind in a way of its own; here the caller sees
    exactly what comes out of the coroutine.
    """
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()
    raise AssertionError("the coroutine waits for something")


class SpyGate(SeqGate):
    """A gate that notes its calls in a list that a store may share."""

    def __init__(self, calls: list[str]) -> None:
        super().__init__()
        self._calls = calls

    def accept(self, snapshot: Snapshot) -> None:
        """Note and accept."""
        self._calls.append("accept")
        super().accept(snapshot)

    def release(self, run_id: str, seq: int) -> bool:
        """Note and release."""
        self._calls.append("release")
        return super().release(run_id, seq)


class SpyStore:
    """A store that notes its saves and fails when it is told to.

    Attributes:
        inner: What it saves to and loads from.
        fail_before: Raised by the next saves before anything is written.
        fail_after: Raised by the next saves after the write: an ambiguous commit.
        fail_load: Raised by loads.
    """

    def __init__(self, calls: list[str], inner: StoreCAS | None = None) -> None:
        self._calls = calls
        self.inner: StoreCAS = inner or MemoryStore()
        self.fail_before: BaseException | None = None
        self.fail_after: BaseException | None = None
        self.fail_load: BaseException | None = None

    async def save_if_newer(self, snapshot: Snapshot) -> None:
        """Note, and save or fail."""
        self._calls.append("save_if_newer")
        if self.fail_before is not None:
            raise self.fail_before
        await self.inner.save_if_newer(snapshot)
        if self.fail_after is not None:
            raise self.fail_after

    async def load(self, run_id: str) -> Snapshot:
        """Note, and load or fail."""
        self._calls.append("load")
        if self.fail_load is not None:
            raise self.fail_load
        return await self.inner.load(run_id)


class PlainAsCas:
    """A plain store in place of one that compares: the wrong store that tests must notice."""

    def __init__(self, inner: MemoryStore) -> None:
        self._inner = inner

    async def save_if_newer(self, snapshot: Snapshot) -> None:
        """Save without comparing."""
        await self._inner.save(snapshot)

    async def load(self, run_id: str) -> Snapshot:
        """Load."""
        return await self._inner.load(run_id)
