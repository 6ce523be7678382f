"""A process that works on one run of a store; started by the crash tests.

Usage: ``checkpoint_child.py KIND FOLDER commit SEQ``, or ``… seed``, or ``… resume``. It prints
what came of it as one line of JSON, and then waits until its standard input ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from checkpoint_media import BothStores, Medium

from worker_under_test.checkpoint import (
    Committer,
    SeqGate,
    Snapshot,
    StaleSeq,
    load_if_any,
)

RUN = "order-17"


def snapshot(seq: int) -> Snapshot:
    """Return the snapshot that every process makes for a number, with text in every field."""
    return Snapshot(RUN, seq, "running", [f"step-{n}" for n in range(seq)], {"goal": "编排 🜁"})


def facts(found: Snapshot) -> dict[str, object]:
    """Return the five fields as JSON can hold them."""
    return {
        "run_id": found.run_id,
        "seq": found.seq,
        "status": found.status,
        "done": list(found.done),
        "fields": dict(found.fields),
    }


async def act(store: BothStores, action: str, *numbers: str) -> object:
    """Do one thing and return what came of it."""
    committer = Committer(SeqGate(), store)
    match action:
        case "commit":
            try:
                await committer.commit(snapshot(int(numbers[0])))
            except StaleSeq:
                return "stale"
            return "landed"
        case "seed":
            await committer.seed_from_store(RUN)
            return committer.last(RUN)
        case _:
            return await resume(store, committer)


async def resume(store: BothStores, committer: Committer) -> object:
    """Find out what is stored, commit the next number, and return both as loaded."""
    await committer.seed_from_store(RUN)
    before = await load_if_any(store, RUN)
    assert committer.last(RUN) == (before.seq if before else 0)
    await committer.commit(snapshot(committer.last(RUN) + 1))
    return [before and facts(before), facts(await store.load(RUN))]


async def main(kind: str, folder: str, action: str, *numbers: str) -> None:
    """Open the store, act, tell, and wait."""
    async with Medium(kind, Path(folder)).open() as store:
        sys.stdout.write(json.dumps(await act(store, action, *numbers)) + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
