"""The committer: the rows of its table, and every way in which a save can end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Literal, cast

import pytest
from checkpoint_doubles import RUN, PlainAsCas, SpyGate, SpyStore, drive, snapshot

from worker_under_test.checkpoint import (
    Committer,
    DamagedRecordError,
    InvalidSnapshotError,
    NotFound,
    SeqGate,
    Snapshot,
    StaleSeq,
    StoreCAS,
    StoreMissing,
)
from worker_under_test.checkpoint.stores.memory import MemoryStore


@dataclass
class Call:
    """One commit of a row: what is committed under which fault, and what must come of it."""

    seq: int
    calls: str
    last: int
    stored: int
    error: type[BaseException] | None = None
    fault: Literal["", "before", "after"] = ""


@dataclass
class Row:
    """One row of the table: what is there at first, and the commits."""

    name: str
    commits: list[Call]
    stored: int = 0
    seeded: int = 0
    gate: bool = True
    cas: bool = True
    calls: list[str] = field(default_factory=list)


FULL, REFUSED, FAILED = "accept save_if_newer", "accept", "accept save_if_newer release"
ROWS = [
    Row("nothing stored, commit 1", [Call(1, FULL, 1, 1)]),
    Row("5 seeded, commit 5", [Call(5, REFUSED, 5, 5, StaleSeq)], stored=5, seeded=5),
    Row("5 seeded, commit 4", [Call(4, REFUSED, 5, 5, StaleSeq)], stored=5, seeded=5),
    Row("5 not seeded, commit 4", [Call(4, FAILED, 0, 5, StaleSeq)], stored=5),
    Row("5 not seeded, plain store: regression", [Call(4, FULL, 4, 4)], stored=5, cas=False),
    Row(
        "5 seeded, 6 fails, then 6 again",
        [Call(6, FAILED, 5, 5, OSError, "before"), Call(6, FULL, 6, 6)],
        stored=5,
        seeded=5,
    ),
    Row("9 by another, gate at 5", [Call(7, FAILED, 5, 9, StaleSeq)], stored=9, seeded=5),
    Row(
        "5 stored, 6 written but reported as failed, then 6 again",
        [Call(6, FAILED, 5, 6, OSError, "after"), Call(6, FAILED, 5, 6, StaleSeq)],
        stored=5,
        seeded=5,
    ),
    Row("no gate, commit 5", [Call(5, "save_if_newer", 0, 5)], gate=False),
    Row("no gate, stale", [Call(5, "save_if_newer", 0, 5, StaleSeq)], stored=5, gate=False),
    Row("seq 0, nothing stored", [Call(0, REFUSED, 0, 0, StaleSeq)]),
    Row("seq 0, 5 stored", [Call(0, REFUSED, 5, 5, StaleSeq)], stored=5, seeded=5),
    Row("seq 0, no gate", [Call(0, "save_if_newer", 0, 5, StaleSeq)], stored=5, gate=False),
    Row("5 twice, then 3", [
        Call(5, FULL, 5, 5),
        Call(5, REFUSED, 5, 5, StaleSeq),
        Call(3, REFUSED, 5, 5, StaleSeq),
    ]),
    Row("first save ever fails", [Call(5, FAILED, 0, 0, OSError, "before"), Call(1, FULL, 1, 1)]),
    Row("busy three times", [
        *[Call(6, FAILED, 5, 5, OSError, "before")] * 3,
        Call(6, FULL, 6, 6),
    ], stored=5, seeded=5),
]  # fmt: skip


@pytest.mark.requirement("COM-02", "COM-03", "COM-06..COM-11", "COM-14", "COM-15", "COM-19")
@pytest.mark.requirement("GAT-09", "GAT-10", "GAT-16", "GAT-20")
@pytest.mark.requirement("SNP-04", "STO-15", "STO-16", "STO-21")
@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_row(row: Row) -> None:
    """Calls, error, last and stored number are those of the row."""

    async def scenario() -> None:
        memory = MemoryStore()
        if row.stored:
            await memory.save(snapshot(row.stored, "earlier"))
        store = SpyStore(row.calls, memory if row.cas else PlainAsCas(memory))
        gate = SpyGate(row.calls) if row.gate else None
        if gate is not None:
            gate.seed(RUN, row.seeded)
        committer = Committer(gate, store)
        for call in row.commits:
            row.calls.clear()
            store.fail_before = OSError("disk") if call.fault == "before" else None
            store.fail_after = OSError("disk") if call.fault == "after" else None
            error: BaseException | None = None
            try:
                await committer.commit(snapshot(call.seq, "mine"))
            except (OSError, StaleSeq) as raised:
                error = raised
            assert type(error) is (call.error or type(None))
            assert row.calls == call.calls.split()
            assert committer.last(RUN) == call.last
            stored = await load_seq(memory)
            assert stored == call.stored

    asyncio.run(scenario())


async def load_seq(store: MemoryStore) -> int:
    """Return the stored number, 0 for none."""
    try:
        return (await store.load(RUN)).seq
    except NotFound:
        return 0


@pytest.mark.requirement("COM-16", "COM-17", "STO-21")
def test_own_ambiguous_commit_is_recognised() -> None:
    """After the retry's StaleSeq a load shows the caller's own snapshot."""

    async def scenario() -> None:
        store = SpyStore([])
        committer = Committer(SeqGate(), store)
        mine = snapshot(6, "a", "b")
        store.fail_after = OSError("reply lost")
        with pytest.raises(OSError, match="reply lost"):
            await committer.commit(mine)
        store.fail_after = None
        with pytest.raises(StaleSeq):
            await committer.commit(mine)
        assert (await store.load(RUN)).same_facts(mine)

    asyncio.run(scenario())


@pytest.mark.requirement("GAT-18", "GAT-29", "AMB-18")
def test_older_one_refused_while_the_newer_one_fails() -> None:
    """6 in flight, 5 refused, 6 fails: nothing landed, and 5 can go on."""

    async def scenario() -> None:
        calls: list[str] = []
        inner = MemoryStore()
        await inner.save(snapshot(3))
        arrived, go_on = asyncio.Event(), asyncio.Event()

        class SlowThenFails(SpyStore):
            async def save_if_newer(self, snapshot: Snapshot) -> None:
                arrived.set()
                await go_on.wait()
                await super().save_if_newer(snapshot)

        store = SlowThenFails(calls, inner)
        store.fail_before = OSError("disk")
        committer = Committer(SpyGate(calls), store)
        await committer.seed_from_store(RUN)
        calls.clear()
        newer = asyncio.create_task(committer.commit(snapshot(6)))
        await arrived.wait()
        with pytest.raises(StaleSeq):
            await committer.commit(snapshot(5))
        assert calls == ["accept", "accept"]
        go_on.set()
        with pytest.raises(OSError, match="disk"):
            await newer
        assert calls == ["accept", "accept", "save_if_newer", "release"]
        assert (committer.last(RUN), (await inner.load(RUN)).seq) == (3, 3)
        store.fail_before = None
        await committer.commit(snapshot(4))
        assert (await inner.load(RUN)).seq == 4

    asyncio.run(scenario())


class OddBaseError(BaseException):
    """An error outside the usual hierarchy."""


@pytest.mark.requirement("COM-11", "COM-12", "COM-15", "GAT-10")
@pytest.mark.parametrize(
    "failure",
    [
        OSError(28, "no space left"),
        TimeoutError("busy"),
        asyncio.CancelledError(),
        KeyboardInterrupt(),
        SystemExit(3),
        GeneratorExit(),
        OddBaseError(),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_every_way_out_takes_the_number_back(failure: BaseException) -> None:
    """Whatever the store raises comes out, and 6 can be retried."""
    calls: list[str] = []
    store = SpyStore(calls)
    gate = SpyGate(calls)
    gate.seed(RUN, 5)
    committer = Committer(gate, store)
    store.fail_before = failure
    with pytest.raises(type(failure)) as caught:
        drive(committer.commit(snapshot(6)))
    assert caught.value is failure
    assert calls == ["accept", "save_if_newer", "release"]
    assert committer.last(RUN) == 5
    store.fail_before = None
    drive(committer.commit(snapshot(6)))
    assert committer.last(RUN) == 6


class Parked:
    """A store whose saves never end by themselves."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()

    async def save_if_newer(self, snapshot: Snapshot) -> None:
        """Wait for ever."""
        self.arrived.set()
        await asyncio.Event().wait()

    async def load(self, run_id: str) -> Snapshot:
        """Find nothing."""
        raise NotFound(run_id)


@pytest.mark.requirement("COM-12", "COM-26")
def test_cancellation_takes_the_number_back() -> None:
    """A cancelled commit, and one that runs out of time, can be retried."""

    async def scenario() -> None:
        store = Parked()
        committer = Committer(SeqGate(), store)
        task = asyncio.create_task(committer.commit(snapshot(1)))
        await store.arrived.wait()
        assert committer.last(RUN) == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert committer.last(RUN) == 0
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(committer.commit(snapshot(1)), timeout=0.01)
        assert committer.last(RUN) == 0
        unstarted = asyncio.create_task(committer.commit(snapshot(1)))
        unstarted.cancel()
        with pytest.raises(asyncio.CancelledError):
            await unstarted
        assert committer.last(RUN) == 0

    asyncio.run(scenario())


@pytest.mark.requirement("COM-12")
def test_a_dropped_commit_takes_the_number_back() -> None:
    """A coroutine that is closed in the middle of its save leaves no number behind."""

    class OneTurn(Parked):
        async def save_if_newer(self, snapshot: Snapshot) -> None:
            await asyncio.sleep(0)
            raise AssertionError("nobody comes back here")

    committer = Committer(SeqGate(), OneTurn())
    coroutine = committer.commit(snapshot(1))
    coroutine.send(None)
    assert committer.last(RUN) == 1
    coroutine.close()
    assert committer.last(RUN) == 0


@pytest.mark.requirement("COM-13")
def test_a_failing_release_does_not_hide_the_error() -> None:
    """The caller sees the store's error, with a note about the gate."""

    class BrokenGate(SeqGate):
        def release(self, run_id: str, seq: int) -> bool:
            raise RuntimeError("gate is broken")

    store = SpyStore([])
    store.fail_before = OSError("disk")
    with pytest.raises(OSError, match="disk") as caught:
        drive(Committer(BrokenGate(), store).commit(snapshot(1)))
    assert "gate is broken" in caught.value.__notes__[0]


@pytest.mark.requirement("ERR-03", "COM-01", "COM-04", "COM-05")
@pytest.mark.parametrize("with_gate", [True, False])
@pytest.mark.parametrize("seq", [0, 4, 5, 6])
def test_without_a_store_every_commit_fails(*, with_gate: bool, seq: int) -> None:
    """Each commit raises StoreMissing, and the gate is not asked."""
    gate = SeqGate() if with_gate else None
    if gate is not None:
        gate.seed(RUN, 5)
    committer = Committer(gate, None)
    for _ in range(2):
        with pytest.raises(StoreMissing):
            drive(committer.commit(snapshot(seq)))
        assert committer.last(RUN) == (5 if with_gate else 0)
    if gate is not None:
        drive(Committer(gate, MemoryStore()).commit(snapshot(6)))
        assert gate.last(RUN) == 6


@pytest.mark.requirement("COM-01")
def test_a_committer_is_made_by_its_constructor() -> None:
    """Without the constructor a committer is of no use."""
    with pytest.raises(AttributeError):
        drive(Committer.__new__(Committer).commit(snapshot(1)))


@pytest.mark.requirement("COM-29", "SNP-12")
def test_commit_neither_changes_nor_keeps_the_snapshot() -> None:
    """Changed after the commit, the caller's snapshot does not reach the store."""

    async def scenario() -> None:
        store = MemoryStore()
        mine = Snapshot(RUN, 1, "running", ["a"], {"key": "value"})
        await Committer(SeqGate(), store).commit(mine)
        assert mine == Snapshot(RUN, 1, "running", ["a"], {"key": "value"})
        cast("dict[str, str]", mine.fields)["key"] = "changed later"
        assert (await store.load(RUN)).fields == {"key": "value"}

    asyncio.run(scenario())


@pytest.mark.requirement("SNP-06", "COM-12")
def test_an_unknown_status_takes_the_failure_path() -> None:
    """The store refuses it, and the number is free again."""
    committer = Committer(SeqGate(), MemoryStore())
    with pytest.raises(InvalidSnapshotError, match="paused"):
        drive(committer.commit(snapshot(1, status="paused")))
    assert committer.last(RUN) == 0


@pytest.mark.requirement("GAT-26", "GAT-27", "COM-28", "STO-16")
def test_a_late_save_needs_more_than_a_gate() -> None:
    """Accepted early and saved late, a 5 replaces a 6 in a plain store.

    The gate only compares at the moment of acceptance; the store that compares refuses.
    """

    async def late_five(plain: bool) -> int:
        memory, late = MemoryStore(), asyncio.Event()
        inner: StoreCAS = PlainAsCas(memory) if plain else memory

        class SlowFive(SpyStore):
            async def save_if_newer(self, snapshot: Snapshot) -> None:
                if snapshot.seq == 5:
                    await late.wait()
                await super().save_if_newer(snapshot)

        committer = Committer(SeqGate(), SlowFive([], inner))
        slow = asyncio.create_task(committer.commit(snapshot(5, "a")))
        await asyncio.sleep(0)
        await committer.commit(snapshot(6, "a", "b"))
        late.set()
        (outcome,) = await asyncio.gather(slow, return_exceptions=True)
        assert outcome is None if plain else isinstance(outcome, StaleSeq)
        assert committer.last(RUN) == 6
        return (await memory.load(RUN)).seq

    assert asyncio.run(late_five(plain=True)) == 5
    assert asyncio.run(late_five(plain=False)) == 6


@pytest.mark.requirement("COM-19", "COM-20", "COM-23", "COM-25", "GAT-21")
def test_seeding_after_a_restart() -> None:
    """What is stored is known before the first commit."""

    async def scenario() -> None:
        calls: list[str] = []
        store = SpyStore(calls)
        await store.inner.save_if_newer(snapshot(5))
        committer = Committer(SeqGate(), store)
        await committer.seed_from_store(RUN)
        assert calls == ["load"]
        for seq in (4, 5):
            with pytest.raises(StaleSeq):
                await committer.commit(snapshot(seq))
        assert calls == ["load"]
        await committer.commit(snapshot(9))
        await committer.seed_from_store(RUN)
        assert committer.last(RUN) == 9
        assert committer.last("unknown") == 0

    asyncio.run(scenario())


@pytest.mark.requirement("COM-21", "ERR-01")
def test_seeding_a_first_run() -> None:
    """No record is no error; the first commit then passes."""
    committer = Committer(SeqGate(), MemoryStore())
    drive(committer.seed_from_store(RUN))
    assert committer.last(RUN) == 0
    drive(committer.commit(snapshot(1)))
    assert committer.last(RUN) == 1


@pytest.mark.requirement("COM-22", "ERR-05")
@pytest.mark.parametrize(
    "failure",
    [OSError("disk"), TimeoutError("busy"), DamagedRecordError("flipped"), StaleSeq("odd")],
    ids=lambda failure: type(failure).__name__,
)
def test_seeding_fails_if_the_load_fails(failure: Exception) -> None:
    """Any other error of the load comes out, and the gate is as it was."""
    store = SpyStore([])
    store.fail_load = failure
    gate = SeqGate()
    gate.seed(RUN, 3)
    with pytest.raises(type(failure)) as caught:
        drive(Committer(gate, store).seed_from_store(RUN))
    assert caught.value is failure
    assert gate.last(RUN) == 3


@pytest.mark.requirement("COM-24")
@pytest.mark.parametrize(
    ("gate", "store", "fails"),
    [(None, MemoryStore(), False), (SeqGate(), None, True), (None, None, True)],
)
def test_seeding_with_a_part_missing(
    gate: SeqGate | None, store: MemoryStore | None, *, fails: bool
) -> None:
    """Seeding does nothing without a gate and is an error without a store."""
    committer = Committer(gate, store)
    if fails:
        with pytest.raises(StoreMissing):
            drive(committer.seed_from_store(RUN))
    else:
        drive(committer.seed_from_store(RUN))
    assert committer.last(RUN) == 0
