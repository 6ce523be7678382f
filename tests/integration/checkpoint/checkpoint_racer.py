"""One of two processes that commit to one store at the same moments."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from worker_under_test.checkpoint import Committer, SeqGate, Snapshot, StaleSeq

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.synchronize import Barrier

    from checkpoint_media import Medium

DEADLINE_S = 60


def race(medium: Medium, offers: list[int], barrier: Barrier, results: Connection) -> None:
    """Offer one number per round, all processes at once, and send home which ones landed.

    Args:
        medium: Where the store is.
        offers: The number to offer in each round.
        barrier: Where the processes of a round meet.
        results: Where to send, per round, whether the offer landed and what was loaded after it.
    """

    async def rounds() -> list[tuple[bool, int]]:
        outcome = []
        async with medium.open() as store:
            committer = Committer(SeqGate(), store)
            for seq in offers:
                await asyncio.to_thread(barrier.wait, DEADLINE_S)
                try:
                    await committer.commit(Snapshot("run", seq, "running"))
                    landed = True
                except StaleSeq:
                    landed = False
                await asyncio.to_thread(barrier.wait, DEADLINE_S)
                outcome.append((landed, (await store.load("run")).seq))
        return outcome

    try:
        results.send(asyncio.run(rounds()))
    except BaseException:
        barrier.abort()  # so that the other one does not wait for a process that failed
        raise
    finally:
        results.close()
