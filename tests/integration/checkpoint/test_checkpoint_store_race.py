"""Two operating-system processes that race for one run."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
from typing import TYPE_CHECKING

import pytest
from checkpoint_media import DURABLE_KINDS, Medium
from checkpoint_racer import DEADLINE_S, race

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 250  # per kind of store


@pytest.mark.requirement("STO-12", "STO-13", "STO-15", "COM-28", "SNP-03")
@pytest.mark.parametrize("kind", DURABLE_KINDS)
def test_two_processes(kind: str, tmp_path: Path) -> None:
    """The stored number is the highest, won once.

    In a third of the rounds both offer the same number, in the others one offers more.
    """
    medium = Medium(kind, tmp_path)

    async def create() -> None:
        async with medium.open():
            pass

    asyncio.run(create())
    dice = random.Random(4)
    offers = [
        dice.choice([(2 * n, 2 * n), (2 * n, 2 * n + 1), (2 * n + 1, 2 * n)])
        for n in range(1, ROUNDS + 1)
    ]
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    racers = []
    for me in range(2):
        receiver, sender = context.Pipe(duplex=False)
        mine = [pair[me] for pair in offers]
        process = context.Process(target=race, args=(medium, mine, barrier, sender), daemon=True)
        process.start()
        sender.close()
        racers.append((process, receiver))
    outcomes = []
    try:
        for _, receiver in racers:
            assert receiver.poll(DEADLINE_S)
            outcomes.append(receiver.recv())
    finally:
        for process, receiver in racers:
            receiver.close()
            process.join(DEADLINE_S)
            process.kill()
    contested = 0
    for (one, other), (landed_one, seen_one), (landed_other, seen_other) in zip(
        offers, *outcomes, strict=True
    ):
        assert seen_one == seen_other == max(one, other)
        if one == other:
            contested += 1
            assert landed_one + landed_other == 1
        else:
            assert landed_one if one > other else landed_other
    assert contested > ROUNDS // 5
