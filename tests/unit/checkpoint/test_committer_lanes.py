"""Steps that finish at the same time commit through one committer, and none is lost."""

from __future__ import annotations

import asyncio
import random

import pytest
from checkpoint_doubles import RUN, SpyStore, snapshot

from worker_under_test.checkpoint import (
    Committer,
    SeqGate,
    Snapshot,
    StaleSeq,
    StoreCAS,
    load_if_any,
)

LANES = [f"lane-{n}" for n in range(8)]


class MoodyStore(SpyStore):
    """A store that lets others go first, and fails before or after the write, by its dice."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__([])
        self._dice = dice

    async def save_if_newer(self, snapshot: Snapshot) -> None:
        """Wait a few turns, then save, fail, or save and fail."""
        for _ in range(self._dice.randrange(4)):
            await asyncio.sleep(0)
        mood = self._dice.random()
        if mood < 0.25:
            raise OSError("before the write")
        await super().save_if_newer(snapshot)
        if mood < 0.5:
            raise OSError("after the write")


async def record(committer: Committer, store: StoreCAS, step_id: str) -> None:
    """Record one finished step: load, add it on top, commit; again until a load shows it."""
    for _ in range(1000):
        stored = await load_if_any(store, RUN) or snapshot(0)
        if step_id in stored.done:
            return
        try:
            await committer.commit(snapshot(stored.seq + 1, *stored.done, step_id))
        except (StaleSeq, OSError):
            # Another lane's number is in flight; it lands or fails within a few turns.
            await asyncio.sleep(0)
    raise AssertionError(f"{step_id} never landed")


@pytest.mark.requirement("COM-16", "COM-18", "GAT-11", "GAT-29", "SNP-03", "SNP-16", "AMB-18")
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("with_gate", [True, False])
def test_no_completion_is_lost(*, seed: int, with_gate: bool) -> None:
    """Eight lanes commit at once while half of the saves fail.

    Every lane's step is in the end in the one snapshot, which is the last of a rising sequence.
    """

    async def scenario() -> None:
        store = MoodyStore(random.Random(seed))
        committer = Committer(SeqGate() if with_gate else None, store)
        await asyncio.gather(*(record(committer, store, lane) for lane in LANES))
        final = await store.load(RUN)
        assert sorted(final.done) == sorted(LANES)
        assert final.seq == len(LANES)

    asyncio.run(scenario())
