"""The recovery scan."""

from __future__ import annotations

import asyncio

import pytest
from worker_bench import Bench, attempt

from worker_under_test.application.recovery import Recovery
from worker_under_test.domain.attempt import AttemptState
from worker_under_test.domain.progress import Checkpoint
from worker_under_test.domain.recovery import Decision


def bench_with_four() -> Bench:
    """Return a bench with one attempt for each decision."""
    bench = Bench()
    bench.store.put(attempt("c1"), AttemptState.PENDING)
    bench.store.put(attempt("c2"), AttemptState.RUNNING)
    bench.store.put(attempt("c3", "transfer"), AttemptState.RUNNING)
    bench.store.put(attempt("c4", "gone"), AttemptState.RUNNING)
    bench.store.put(attempt("c5"), AttemptState.SUCCEEDED)
    bench.store.checkpoints["attempt-c3"] = Checkpoint(7, {}, {})
    return bench


EXPECTED = [Decision.START, Decision.RECOMPUTE, Decision.RESUME, Decision.UNKNOWN]


@pytest.mark.requirement("REC-01", "REC-02", "REC-14", "REC-15", "ATT-10")
def test_each_attempt_gets_the_decision_of_its_capability() -> None:
    """Four attempts get four decisions, and what is finished gets none."""

    async def run() -> None:
        bench = bench_with_four()
        recovered = await Recovery(bench.ports).scan(3)
        assert [each.decision for each in recovered] == EXPECTED
        saved = bench.store.decisions
        assert [each.decision for each in saved] == EXPECTED
        assert [each.found_checkpoint_seq for each in saved] == [None, None, 7, None]
        assert {each.boot for each in saved} == {3}
        assert "execute c1" not in bench.log

    asyncio.run(run())


@pytest.mark.requirement("REC-17")
@pytest.mark.parametrize("survived", range(4))
def test_the_scan_can_be_broken_off_and_done_again(survived: int) -> None:
    """A failure after each number of decisions; the next scan decides the same."""

    async def run() -> None:
        bench = bench_with_four()
        bench.store.faults.plan("decide", *[None] * survived, OSError("crash"))
        with pytest.raises(OSError, match="crash"):
            await Recovery(bench.ports).scan(1)
        again = await Recovery(bench.ports).scan(2)
        assert [each.decision for each in again] == EXPECTED

    asyncio.run(run())
