"""The coordinator's books: what follows from its facts."""

from __future__ import annotations

from harness.world.coordinator.facts import Ack, CoordinatorFacts, Event, OfferedCommand
from harness.world.coordinator.state import CoordinatorState


def _event(position: int, session_id: str = "session-1", kind: str = "succeeded") -> Event:
    return Event(position, "e1", session_id, "c1", "a1", kind, {"x": 1, "y": 2})


def test_books_made_from_facts_are_the_books_that_made_them() -> None:
    """Opening from facts gives the same state as living through them."""
    lived = CoordinatorState(CoordinatorFacts())
    command = OfferedCommand(1, "c1", {})
    lived.enter([command])
    deliveries = lived.deliveries([("session-1", "c1"), ("session-1", "c1")])
    lived.enter(deliveries)
    ack = Ack(4, "c1", "session-1", repeated=False)
    lived.enter([ack])
    receipt = lived.receipt(_event(5))
    lived.enter([receipt])
    read = CoordinatorState(
        CoordinatorFacts(
            commands=(command,), deliveries=deliveries, acks=(ack,), receipts=(receipt,)
        )
    )
    assert vars(read) == vars(lived)
    assert read.position == 5
    assert [d.number for d in read.deliveries([("session-1", "c1")])] == [3]


def test_content_of_an_event_is_not_who_sent_it() -> None:
    """The same event from another session is a repeat; another kind is a conflict."""
    books = CoordinatorState(CoordinatorFacts())
    first = books.receipt(_event(1))
    books.enter([first])
    assert first.outcome == "accepted"
    assert books.receipt(_event(2, session_id="session-2")).outcome == "repeated"
    assert books.receipt(_event(2, kind="failed")).outcome == "conflicting"


def test_backlog_is_in_the_order_of_offering() -> None:
    """Unacknowledged commands come oldest first, acknowledged ones only after the last number."""
    books = CoordinatorState(CoordinatorFacts())
    books.enter([OfferedCommand(n, f"c{n}", {}) for n in (1, 2, 3)])
    books.enter(books.deliveries([("s", "c3"), ("s", "c1")]))
    books.enter([Ack(6, "c3", "s", repeated=False), Ack(7, "c1", "s", repeated=False)])
    assert books.backlog(None) == ("c2",)
    assert books.backlog(1) == ("c1", "c2")
    assert books.backlog(0) == ("c1", "c2", "c3")
