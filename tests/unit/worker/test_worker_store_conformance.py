"""One body for every `LocalStore`: the one on SQLite and the one in memory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from store_double import MemoryStore

from worker_under_test.adapters.sqlite_store import SqliteStore
from worker_under_test.domain.attempt import Attempt, AttemptState
from worker_under_test.domain.command import Command
from worker_under_test.domain.errors import DomainError
from worker_under_test.domain.event import Event, EventKind
from worker_under_test.domain.order import (
    Answer,
    Cancel,
    Directives,
    Drain,
    LateAnswer,
    Limit,
    Offer,
    Reconcile,
)
from worker_under_test.domain.progress import Checkpoint
from worker_under_test.domain.recovery import Decision, RecoveryDecision
from worker_under_test.ports.local_store import Acceptance, Remaining, Standing, Started

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from worker_under_test.domain.order import Order
    from worker_under_test.ports.local_store import LocalStore

C1, C2 = (Command(name, "work", 1, {"n": name}) for name in ("c1", "c2"))
OTHER = Command("c1", "work", 1, {"n": "other"})


def order(name: str, command_id: str, **payload: str) -> Command:
    """Return a command that carries an order."""
    return Command(command_id, f"control.{name}", 1, dict(payload))


def ended(number: int, kind: EventKind = EventKind.SUCCEEDED) -> Event:
    """Return the end of the n-th attempt."""
    return Event(f"e{number}", f"c{number}", f"a{number}", kind, {"n": number})


async def accepts(store: LocalStore) -> None:
    """New, repeated and conflicting commands are told apart; open ones are counted."""
    assert await store.standing("c1") == Standing(known=False, open_attempts=0)
    assert (await store.accept(C1, "a1")).outcome is Acceptance.ACCEPTED
    repeat = await store.accept(C1, "other")
    assert (repeat.outcome, repeat.attempt_id) == (Acceptance.REPEATED, "a1")
    assert (await store.accept(OTHER, "other")).outcome is Acceptance.CONFLICTING
    assert await store.standing("c1") == Standing(known=True, open_attempts=1)
    (found,) = await store.unfinished()
    assert (found.attempt, found.state) == (Attempt("a1", C1), AttemptState.PENDING)


async def runs(store: LocalStore) -> None:
    """An attempt starts, records a checkpoint, finishes, and never starts again."""
    await store.accept(C1, "a1")
    assert await store.start("a1", acknowledged=True) == Started(running=True)
    assert await store.save_checkpoint(Attempt("a1", C1), Checkpoint(1, {}, {"at": 1}))
    assert not await store.save_checkpoint(Attempt("a1", C1), Checkpoint(1, {}, {"at": 2}))
    await store.finish(ended(1), ())
    assert await store.unfinished() == []
    assert await store.standing("c1") == Standing(known=True, open_attempts=0)
    with pytest.raises(DomainError):
        await store.start("a1", acknowledged=True)
    with pytest.raises(DomainError):
        await store.finish(ended(1, EventKind.FAILED), ())


async def reports(store: LocalStore) -> None:
    """Unsent events come in the order of saving and are of value until they are marked."""
    for number, command in ((1, C1), (2, C2)):
        await store.accept(command, f"a{number}")
        await store.start(f"a{number}", acknowledged=True)
    await store.finish(ended(2), ())
    await store.finish(ended(1), ())
    assert await store.unreported() == [ended(2), ended(1)]
    assert await store.commands_of_value() == {"c1", "c2"}
    await store.mark_reported(ended(2))
    assert await store.unreported() == [ended(1)]
    assert await store.commands_of_value() == {"c1"}


async def recovers(store: LocalStore) -> None:
    """Starts are counted, and a decision moves what had begun and nothing else."""
    assert (await store.begin_incarnation("w")).boot == 1
    assert (await store.begin_incarnation("w")).boot == 2
    await store.accept(C1, "a1")
    await store.accept(C2, "a2")
    await store.start("a2", acknowledged=False)
    await store.save_checkpoint(Attempt("a2", C2), Checkpoint(3, {}, {}))
    for name, state, seq, decision in (
        ("1", AttemptState.PENDING, None, Decision.START),
        ("2", AttemptState.RUNNING, 3, Decision.RESUME),
    ):
        await store.decide(RecoveryDecision(2, f"a{name}", f"c{name}", state, seq, decision, "why"))
    found = await store.unfinished()
    assert [each.state for each in found] == [AttemptState.PENDING, AttemptState.RECOVERING]
    again = await store.start("a2", acknowledged=False)
    assert again == Started(running=True, checkpoint=Checkpoint(3, {}, {}))


async def obeys(store: LocalStore) -> None:
    """Orders add up, are answered, and take no room."""
    assert await store.directives() == Directives()
    given: list[tuple[str, Order]] = [
        ("drain", Drain(draining=True)),
        ("capacity", Limit(2)),
        ("withdraw", Offer("work", 1, offered=False)),
        ("withdraw", Offer("work", 2, offered=False)),
        ("offer", Offer("work", 1, offered=True)),
    ]
    for n, (name, each) in enumerate(given):
        saved = await store.accept_order(order(name, f"o{n}"), each, f"b{n}", f"f{n}")
        assert saved.outcome is Acceptance.ACCEPTED
    wanted = Directives(draining=True, limit=2, withdrawn=frozenset({("work", 2)}))
    assert await store.directives() == wanted
    again = await store.accept_order(order("drain", "o0"), Drain(draining=False), "x", "y")
    assert again.outcome is Acceptance.REPEATED
    assert await store.directives() == wanted
    assert len(await store.unreported()) == 5
    assert await store.unfinished() == []
    assert (await store.standing("o0")) == Standing(known=True, open_attempts=0)


async def cancels(store: LocalStore) -> None:
    """A cancel is saved for what is open, and says what it found."""

    async def cancel(target: str, name: str) -> object:
        await store.accept_order(order("cancel", name), Cancel(target), f"a-{name}", f"e-{name}")
        return (await store.unreported())[-1].body

    await store.accept(C1, "a1")
    await store.accept(C2, "a2")
    await store.start("a2", acknowledged=True)
    assert await cancel("c1", "x1") == {"target": "c1", "found": "PENDING"}
    assert await cancel("c2", "x2") == {"target": "c2", "found": "RUNNING"}
    assert await cancel("c3", "x3") == {"target": "c3", "found": "none"}
    assert await store.start("a1", acknowledged=True) == Started(running=False)
    assert [each.cancelled for each in await store.unfinished()] == [True, True]
    await store.finish(ended(1, EventKind.CANCELLED), ())
    assert await cancel("c1", "x4") == {"target": "c1", "found": "CANCELLED"}


async def reconciles(store: LocalStore) -> None:
    """The first answer settles an unknown outcome; evidence settles nothing."""

    async def said(name: str, each: Order, verb: str) -> object:
        await store.accept_order(order(verb, name), each, f"a-{name}", f"e-{name}")
        return (await store.unreported())[-1].body

    await store.accept(C1, "a1")
    await store.accept(C2, "a2")
    await store.start("a1", acknowledged=True)
    early = await said("r0", Reconcile("c1", Answer.CONFIRMED_DONE), "reconcile")
    assert early == {"target": "c1", "found": "RUNNING", "settled": None}
    await store.finish(ended(1, EventKind.UNKNOWN), ())
    await store.mark_reported(ended(1, EventKind.UNKNOWN))
    late = await said("l1", LateAnswer("c1", {"sent": True}), "evidence")
    assert late == {"target": "c1", "found": "UNKNOWN"}
    nobody = await said("l2", LateAnswer("c9", {"sent": True}), "evidence")
    assert nobody == {"target": "c9", "found": "none"}
    assert (await store.remaining()).unknown == ("c1",)
    assert "c1" in await store.commands_of_value()
    for name, answer in (("r1", Answer.CONFIRMED_NOT_DONE), ("r2", Answer.ABANDON)):
        told = await said(name, Reconcile("c1", answer), "reconcile")
        assert told == {"target": "c1", "found": "UNKNOWN", "settled": "confirmed_not_done"}
    assert (await store.remaining()).unknown == ()
    assert "c1" not in await store.commands_of_value()
    assert [each.attempt.command.command_id for each in await store.unfinished()] == ["c2"]
    with pytest.raises(DomainError):
        await store.start("a1", acknowledged=True)


async def is_drained(store: LocalStore) -> None:
    """Open attempts and unsent events keep it from being so; unknown ones are named."""
    assert (await store.remaining()).drained
    for number, command in ((1, C1), (2, C2)):
        await store.accept(command, f"a{number}")
        await store.start(f"a{number}", acknowledged=True)
    await store.finish(ended(1, EventKind.UNKNOWN), ())
    assert await store.remaining() == Remaining(1, 1, ("c1",))
    await store.finish(ended(2, EventKind.UNKNOWN), ())
    for number in (1, 2):
        assert not (await store.remaining()).drained
        await store.mark_reported(ended(number, EventKind.UNKNOWN))
    assert await store.remaining() == Remaining(0, 0, ("c1", "c2"))
    assert (await store.remaining()).drained


def in_memory(_root: Path) -> LocalStore:
    """Return the double."""
    return MemoryStore([])


def on_sqlite(root: Path) -> LocalStore:
    """Return the adapter."""
    return SqliteStore(root / "worker.db", init=True)


@pytest.mark.requirement("ATT-01", "SES-03")
@pytest.mark.parametrize("make", [in_memory, on_sqlite])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            accepts, marks=pytest.mark.requirement("INB-02", "INB-06", "INB-12", "ADM-02")
        ),
        pytest.param(runs, marks=pytest.mark.requirement("ATT-01", "ATT-02", "ATT-09", "ATT-10")),
        pytest.param(reports, marks=pytest.mark.requirement("ATT-04", "OUT-31", "CLN-02")),
        pytest.param(recovers, marks=pytest.mark.requirement("REC-17", "IDN-06")),
        pytest.param(obeys, marks=pytest.mark.requirement("DRN-01", "DRN-02", "DRN-08", "DRN-09")),
        pytest.param(cancels, marks=pytest.mark.requirement("ADM-07..ADM-09")),
        pytest.param(
            reconciles, marks=pytest.mark.requirement("UNK-05..UNK-07", "DRN-07", "CLN-01")
        ),
        pytest.param(is_drained, marks=pytest.mark.requirement("DRN-07")),
    ],
)
def test_a_store_keeps_the_contract(
    tmp_path: Path,
    make: Callable[[Path], LocalStore],
    body: Callable[[LocalStore], Awaitable[None]],
) -> None:
    """The double that every other test rests on does what SQLite does."""

    async def run() -> None:
        store = make(tmp_path)
        await store.open()
        try:
            await body(store)
        finally:
            await store.close()

    asyncio.run(run())
