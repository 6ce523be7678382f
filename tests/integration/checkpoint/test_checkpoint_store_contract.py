"""What every store must do: one body for memory, SQLite and files."""

from __future__ import annotations

import asyncio
import itertools
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, cast

import pytest
from checkpoint_media import KINDS, Medium
from hypothesis import given, settings
from hypothesis import strategies as st

from worker_under_test.checkpoint import (
    MAX_SEQ,
    Committer,
    ConflictingSnapshotError,
    InvalidSnapshotError,
    NotFound,
    SeqGate,
    Snapshot,
    StaleSeq,
    Status,
)

if TYPE_CHECKING:
    from pathlib import Path

    from checkpoint_media import BothStores

RUN = "run"


@pytest.fixture(params=KINDS)
def medium(request: pytest.FixtureRequest, tmp_path: Path) -> Medium:
    """Return each kind of store in turn."""
    return Medium(request.param, tmp_path)


def snapshot(seq: int, *done: str, run_id: str = RUN) -> Snapshot:
    """Return a snapshot."""
    return Snapshot(run_id, seq, "running", done, {"seq": str(seq)})


async def load_or_none(store: BothStores, run_id: str = RUN) -> Snapshot | None:
    """Return what is stored, None for nothing."""
    try:
        return await store.load(run_id)
    except NotFound:
        return None


TRICKY_TEXTS = [
    "",
    " leading and trailing ",
    "quotes ' \" ` and \\ and %s ? $1",
    "line\nbreak\r\n\ttab",
    "nul \0 inside",
    "\x1b[31mred\x7f",
    unicodedata.normalize("NFC", "é"),
    unicodedata.normalize("NFD", "é"),
    "编排进度 🜁 \u202eright to left",
    "\ufeffbyte order mark",
    "1" * 1_000_000,
]


@pytest.mark.requirement("SNP-01", "SNP-09", "STO-01", "STO-14")
@pytest.mark.parametrize("save", ["save", "save_if_newer"])
def test_round_trip_of_tricky_texts(medium: Medium, save: str) -> None:
    """All five fields come back as they were, also reopened."""
    written = [
        Snapshot(f"{text[:1000]}-{number}", number, status, [text, text], {text: text, "": ""})
        for number, (text, status) in enumerate(zip(TRICKY_TEXTS, itertools.cycle(Status)), 1)
    ]

    async def scenario() -> None:
        async with medium.open() as store:
            for one in written:
                await getattr(store, save)(one)
        async with medium.open() as store:
            for one in written:
                assert await store.load(one.run_id) == one

    asyncio.run(scenario())
    assert medium.count_records() == len(written)


texts = st.text(max_size=20)


@pytest.mark.requirement("SNP-01", "SNP-09")
def test_round_trip_of_random_snapshots(medium: Medium) -> None:
    """Whatever a snapshot says comes back, in the order it was said."""

    @settings(max_examples=25, deadline=None, derandomize=True, database=None)
    @given(
        st.lists(
            st.builds(
                Snapshot,
                run_id=st.text(min_size=1, max_size=20),
                seq=st.integers(1, MAX_SEQ),
                status=st.sampled_from(Status),
                done=st.lists(texts),
                fields=st.dictionaries(texts, texts),
            ),
            min_size=1,
            unique_by=lambda one: one.run_id,
        )
    )
    def comes_back(snapshots: list[Snapshot]) -> None:
        async def scenario() -> None:
            async with medium.open() as store:
                for one in snapshots:
                    before = await load_or_none(store, one.run_id)
                    if before is None or before.seq != one.seq:
                        await store.save(one)
                        before = one
                    assert await store.load(one.run_id) == before

        asyncio.run(scenario())

    comes_back()


@pytest.mark.requirement("STO-07", "STO-08", "STO-09", "STO-11", "SNP-04")
@pytest.mark.parametrize("stored", [0, 1, 5])
@pytest.mark.parametrize("new", [0, 1, 4, 5, 6])
def test_save_if_newer(medium: Medium, stored: int, new: int) -> None:
    """A snapshot is written if its number is strictly higher; else nothing changes."""

    async def scenario() -> None:
        async with medium.open() as store:
            before = snapshot(stored, "a") if stored else None
            if before is not None:
                await store.save_if_newer(before)
            offered = snapshot(new, "a", "b")
            if new > stored:
                await store.save_if_newer(offered)
                assert await store.load(RUN) == offered
            else:
                with pytest.raises(StaleSeq):
                    await store.save_if_newer(offered)
                assert await load_or_none(store) == before
        async with medium.open() as store:
            assert await load_or_none(store) == (offered if new > stored else before)

    asyncio.run(scenario())


@pytest.mark.requirement("STO-09")
def test_equal_content_is_stale_too(medium: Medium) -> None:
    """The same snapshot once more is stale, although it says nothing else."""

    async def scenario() -> None:
        async with medium.open() as store:
            await store.save_if_newer(snapshot(5, "a"))
            with pytest.raises(StaleSeq):
                await store.save_if_newer(snapshot(5, "a"))

    asyncio.run(scenario())


@pytest.mark.requirement("STO-10", "SNP-17")
@pytest.mark.parametrize("seq", [1, 7, MAX_SEQ])
def test_a_first_write_always_passes(medium: Medium, seq: int) -> None:
    """A first write passes whatever its number; the highest comes back unwrapped."""

    async def scenario() -> None:
        async with medium.open() as store:
            await store.save_if_newer(snapshot(seq))
            assert (await store.load(RUN)).seq == seq

    asyncio.run(scenario())


@pytest.mark.requirement("STO-04", "STO-14", "ERR-01")
def test_nothing_is_not_found(medium: Medium) -> None:
    """No record is an error and never a zero snapshot."""

    async def scenario() -> None:
        async with medium.open() as store:
            for run_id in (RUN, "", "\ud800"):
                with pytest.raises(NotFound):
                    await store.load(run_id)
            await store.save(snapshot(1, run_id="other"))
            with pytest.raises(NotFound, match="'run'"):
                await store.load(RUN)

    asyncio.run(scenario())


@pytest.mark.requirement("STO-20")
def test_runs_do_not_mix(medium: Medium) -> None:
    """Crossing numbers of runs with similar names stay apart."""
    run_ids = ["r", "R", " r", "r\0", "r/../r", "é", "e\u0301", "r" * 5000]

    async def scenario() -> None:
        async with medium.open() as store:
            for turn in range(3):
                for number, run_id in enumerate(run_ids):
                    seq = 1 + turn * (number + 1)
                    await store.save_if_newer(snapshot(seq, run_id, run_id=run_id))
            for number, run_id in enumerate(run_ids):
                loaded = await store.load(run_id)
                assert (loaded.seq, loaded.done) == (1 + 2 * (number + 1), (run_id,))

    asyncio.run(scenario())
    assert medium.count_records() == len(run_ids)


@pytest.mark.requirement("STO-02", "SNP-07", "SNP-08")
def test_save_is_idempotent(medium: Medium) -> None:
    """The same again, in whatever order, leaves one record, the first."""

    async def scenario() -> None:
        async with medium.open() as store:
            first = snapshot(5, "a", "b")
            for again in (first, first, snapshot(5, "b", "a", "b")):
                await store.save(again)
                assert await store.load(RUN) == first

    asyncio.run(scenario())
    assert medium.count_records() == 1


@pytest.mark.requirement("STO-03")
@pytest.mark.parametrize(
    "other",
    [snapshot(5, "a", "b"), Snapshot(RUN, 5, "failed", ["a"], {"seq": "5"}), Snapshot(RUN, 5, "")],
)
def test_save_reports_a_conflict(medium: Medium, other: Snapshot) -> None:
    """Another content under the same number is an error, and the first one is kept."""

    async def scenario() -> None:
        async with medium.open() as store:
            await store.save(snapshot(5, "a"))
            with pytest.raises(ConflictingSnapshotError):
                await store.save(other)
            assert await store.load(RUN) == snapshot(5, "a")
            await store.save(snapshot(6, "a"))

    asyncio.run(scenario())
    assert medium.count_records() == 1


@pytest.mark.requirement("STO-16", "GAT-26")
def test_save_does_not_order(medium: Medium) -> None:
    """The negative control: a plain late save of 5 replaces 6."""

    async def scenario() -> None:
        async with medium.open() as store:
            await store.save(snapshot(6, "a", "b"))
            await store.save(snapshot(5, "a"))
            assert await store.load(RUN) == snapshot(5, "a")

    asyncio.run(scenario())


@pytest.mark.requirement("SNP-12", "SNP-13", "COM-29", "HAR-08")
@pytest.mark.parametrize("save", ["save", "save_if_newer"])
def test_a_store_keeps_and_returns_copies(medium: Medium, save: str) -> None:
    """Neither the caller's snapshot nor a loaded one reaches the record."""

    async def scenario() -> None:
        async with medium.open() as store:
            mine = snapshot(1, "a")
            await getattr(store, save)(mine)
            cast("dict[str, str]", mine.fields)["seq"] = "changed by the caller"
            loaded = await store.load(RUN)
            assert loaded == snapshot(1, "a")
            cast("dict[str, str]", loaded.fields).clear()
            assert await store.load(RUN) == snapshot(1, "a")

    asyncio.run(scenario())


@pytest.mark.requirement("SNP-04", "SNP-06", "STO-08", "STO-11", "PLN-27")
@pytest.mark.parametrize("save", ["save", "save_if_newer"])
@pytest.mark.parametrize(
    ("refused", "error"),
    [
        (snapshot(0), StaleSeq),
        (Snapshot(RUN, 0, "running", ["a"]), StaleSeq),
        (Snapshot(RUN, 6, "paused"), InvalidSnapshotError),
        (Snapshot(RUN, 6, "Running"), InvalidSnapshotError),
        (Snapshot("", 6, "running"), InvalidSnapshotError),
        (Snapshot(RUN, 6, "running", ["\ud800"]), InvalidSnapshotError),
        (Snapshot(RUN, 6, "running", [], {"path": "caf\udce9"}), InvalidSnapshotError),
    ],
    ids=["zero", "zero with done", "paused", "capital", "no run", "surrogate", "file name"],
)
@pytest.mark.parametrize("stored", [0, 5])
def test_what_cannot_be_stored_is_refused(
    medium: Medium, save: str, refused: Snapshot, error: type[Exception], stored: int
) -> None:
    """What cannot be stored is refused, and nothing is written."""

    async def scenario() -> None:
        async with medium.open() as store:
            if stored:
                await store.save(snapshot(stored, "a"))
            with pytest.raises(error):
                await getattr(store, save)(refused)
            assert await load_or_none(store) == (snapshot(stored, "a") if stored else None)
            assert await load_or_none(store, "") is None

    asyncio.run(scenario())


@pytest.mark.requirement("STO-13", "HAR-07", "M-06")
def test_a_read_then_write_store_lets_the_lower_number_win() -> None:
    """Comparing first and writing later, unconditionally, leaves room for a 6 in between.

    This is the negative control of `test_tasks_at_once` and of the race between processes.
    """

    async def scenario() -> None:
        records: dict[str, Snapshot] = {}
        slow = asyncio.Event()

        async def read_then_write(new: Snapshot, wait: asyncio.Event | None) -> None:
            if RUN in records and records[RUN].seq >= new.seq:
                raise StaleSeq
            if wait is not None:
                await wait.wait()
            records[new.run_id] = new

        late = asyncio.create_task(read_then_write(snapshot(5), slow))
        await asyncio.sleep(0)
        await read_then_write(snapshot(6), None)
        slow.set()
        await late
        assert records[RUN].seq == 5

    asyncio.run(scenario())


@pytest.mark.requirement("STO-07", "STO-12", "STO-15")
def test_tasks_at_once(medium: Medium) -> None:
    """Of many tasks the highest number stays, each number won once."""
    numbers = [1 + (37 * n) % 60 // 2 for n in range(60)]  # 1 to 30, each twice, shuffled

    async def offer(store: BothStores, seq: int) -> int:
        try:
            await store.save_if_newer(snapshot(seq))
        except StaleSeq:
            return 0
        return seq

    async def scenario() -> None:
        async with medium.open() as store:
            won = await asyncio.gather(*(offer(store, seq) for seq in numbers))
            winners = [seq for seq in won if seq]
            assert len(winners) == len(set(winners))
            assert max(winners) == 30
            assert await store.load(RUN) == snapshot(30)

    asyncio.run(scenario())


@pytest.mark.requirement("STO-06")
def test_threads_at_once(medium: Medium) -> None:
    """Eight threads save 200 times each, to runs of their own and to a shared one."""
    threads, saves = 8, 200

    async def work(thread: int) -> None:
        async with medium.open() as store:
            for number in range(1, saves // 2 + 1):
                await store.save(snapshot(number, run_id=f"own-{thread}"))
                try:
                    seq = number * threads + thread
                    await store.save_if_newer(snapshot(seq, run_id="shared"))
                except StaleSeq:
                    pass

    async def check() -> None:
        async with medium.open() as store:
            for thread in range(threads):
                assert (await store.load(f"own-{thread}")).seq == saves // 2
            highest = saves // 2 * threads + threads - 1
            assert await store.load("shared") == snapshot(highest, run_id="shared")

    async def create() -> None:
        async with medium.open():
            pass

    asyncio.run(create())
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda thread: asyncio.run(work(thread)), range(threads)))
    asyncio.run(check())
    assert medium.count_records() == threads + 1


@pytest.mark.requirement("COM-12", "COM-26", "STO-17", "STO-21")
@pytest.mark.parametrize("turns", range(12))
@pytest.mark.parametrize("cancels", [1, 3])
def test_a_cancelled_save_has_ended(medium: Medium, turns: int, cancels: int) -> None:
    """Wherever a save is cancelled, the old record or the new one stays for good.

    Whatever is there when the cancellation arrives stays, since no write is under way any more;
    and the next commit goes through.
    """

    async def scenario() -> None:
        async with medium.open() as store:
            committer = Committer(SeqGate(), store)
            await committer.commit(snapshot(5, "a"))
            task = asyncio.create_task(committer.commit(snapshot(6, "a", "b")))
            for _ in range(turns):
                await asyncio.sleep(0)
            for _ in range(cancels):
                task.cancel()
                await asyncio.sleep(0)
            (outcome,) = await asyncio.gather(task, return_exceptions=True)
            found = await store.load(RUN)
            assert found in (snapshot(5, "a"), snapshot(6, "a", "b"))
            if outcome is None:
                assert found.seq == committer.last(RUN) == 6
            else:
                assert isinstance(outcome, asyncio.CancelledError)
                assert committer.last(RUN) == 5
            assert await store.load(RUN) == found
            await committer.commit(snapshot(found.seq + 1))
            assert (await store.load(RUN)).seq == found.seq + 1

    asyncio.run(scenario())
