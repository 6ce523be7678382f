"""Server-sent events, cut anywhere."""

from __future__ import annotations

import pytest

from worker_under_test.adapters.sse_parser import MAX_EVENT_BYTES, ServerSentEvent, SseParser

STREAM = (
    'id: 3\nevent: command\ndata: {"a": "é"}\n\n'
    ": a comment\n\n"
    "id: 4\r\nevent: command\r\ndata: one\r\ndata:two\r\n\r\n"
    "event: caught-up\ndata: {}\n\n"
).encode()
EVENTS = [
    ServerSentEvent("command", "3", '{"a": "é"}'),
    ServerSentEvent("command", "4", "one\ntwo"),
    ServerSentEvent("caught-up", "", "{}"),
]


@pytest.mark.requirement("INB-14")
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_do_not_depend_on_how_the_bytes_are_cut(size: int) -> None:
    """However the bytes are cut, no event is lost and none is doubled."""
    parser = SseParser()
    pieces = [STREAM[start : start + size] for start in range(0, len(STREAM), size)]
    assert [event for piece in pieces for event in parser.feed(piece)] == EVENTS


@pytest.mark.requirement("INB-14")
@pytest.mark.parametrize("end", range(len(STREAM)))
def test_an_event_that_is_cut_off_does_not_count(end: int) -> None:
    """A disconnect at each byte gives a prefix of the events."""
    got = SseParser().feed(STREAM[:end])
    assert got == EVENTS[: len(got)]
    assert len(got) < len(EVENTS)


@pytest.mark.requirement("INB-13")
def test_an_event_that_is_too_long_is_handed_on_without_data() -> None:
    """Memory is bounded, and the next event is read as ever."""
    parser = SseParser()
    piece = b"x" * (1 << 20)
    got = parser.feed(b"id: 1\nevent: command\ndata: ")
    for _ in range(1 + MAX_EVENT_BYTES // len(piece)):
        got += parser.feed(piece)
    got += parser.feed(b"\n\n" + STREAM)
    assert got == [ServerSentEvent("command", "1", ""), *EVENTS]
