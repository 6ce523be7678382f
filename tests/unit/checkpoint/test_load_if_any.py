"""Learning for certain whether a run has a snapshot."""

from __future__ import annotations

import asyncio

import pytest

from worker_under_test.checkpoint import (
    Committer,
    DamagedRecordError,
    NotFound,
    SeqGate,
    Snapshot,
    load_if_any,
)
from worker_under_test.checkpoint.stores.memory import MemoryStore


class Answers:
    """A store that answers every load in one way."""

    def __init__(self, answer: Snapshot | Exception) -> None:
        self._answer = answer

    async def save_if_newer(self, snapshot: Snapshot) -> None:
        """Refuse."""
        raise AssertionError("nothing may be saved here")

    async def load(self, run_id: str) -> Snapshot:
        """Answer."""
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.mark.requirement("ERR-01", "ORC-03", "STO-04")
def test_none_and_some() -> None:
    """Only a store that says so makes a first run."""

    async def scenario() -> None:
        store = MemoryStore()
        assert await load_if_any(store, "run") is None
        await store.save(Snapshot("run", 1, "running"))
        assert await load_if_any(store, "run") == Snapshot("run", 1, "running")

    asyncio.run(scenario())


@pytest.mark.requirement("STO-05", "GAT-22")
@pytest.mark.parametrize(
    "answer",
    [Snapshot("", 0, ""), Snapshot("run", 0, "running"), Snapshot("other", 5, "running")],
    ids=["zero", "zero seq", "another run"],
)
def test_a_wrong_answer_is_a_broken_store(answer: Snapshot) -> None:
    """A zero snapshot, or another run's, is no first run and seeds nothing."""
    gate = SeqGate()
    with pytest.raises(DamagedRecordError, match="asked for run 'run'"):
        asyncio.run(load_if_any(Answers(answer), "run"))
    with pytest.raises(DamagedRecordError, match="asked for run 'run'"):
        asyncio.run(Committer(gate, Answers(answer)).seed_from_store("run"))
    assert gate.last("run") == 0


def wrapped_not_found() -> Exception:
    """Return an error that happened while a missing record was handled."""
    error = OSError("could not create the record")
    error.__cause__ = NotFound("run")
    return error


@pytest.mark.requirement("ERR-05", "ORC-03")
@pytest.mark.parametrize(
    "failure",
    [OSError("disk"), TimeoutError("busy"), DamagedRecordError("flipped"), wrapped_not_found()],
)
def test_any_other_failure_comes_out(failure: Exception) -> None:
    """A failed load is never read as "never ran", not even with NotFound as its cause."""
    with pytest.raises(type(failure)) as caught:
        asyncio.run(load_if_any(Answers(failure), "run"))
    assert caught.value is failure
