"""Server-sent events out of bytes, cut anywhere (INB-14)."""

from __future__ import annotations

from dataclasses import dataclass

MAX_EVENT_BYTES = 4 << 20
"""Most bytes of an event's data lines that are kept; of more, only name and id are handed on."""


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event of a stream.

    Attributes:
        name: Its name; ``message`` if none was given.
        number: Its id, or empty.
        data: Its data; empty if it was longer than `MAX_EVENT_BYTES`.
    """

    name: str
    number: str
    data: str


class SseParser:
    """Turns pieces of a stream into events; an event counts only with its closing blank line."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._begin()

    def _begin(self) -> None:
        self._name = "message"
        self._number = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[ServerSentEvent]:
        """Take the next bytes.

        Args:
            piece: Bytes as they arrived.

        Returns:
            The events that these bytes complete.
        """
        lines = piece.split(b"\n")
        lines[0] = bytes(self._rest) + lines[0] if self._rest else lines[0]
        # What is over the bound is dropped as it comes, so memory stays bounded too.
        self._rest = bytearray(lines.pop()[: MAX_EVENT_BYTES + 1])
        return [event for line in lines if (event := self._line(line.removesuffix(b"\r")))]

    def _line(self, line: bytes) -> ServerSentEvent | None:
        if not line:
            return self._complete()
        field, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", errors="replace")
        if field == b"event":
            self._name = text
        elif field == b"id":
            self._number = text
        elif field == b"data":
            self._size += len(line)
            if self._size <= MAX_EVENT_BYTES:
                self._data.append(text)
        return None

    def _complete(self) -> ServerSentEvent | None:
        whole = self._size <= MAX_EVENT_BYTES
        event = ServerSentEvent(self._name, self._number, "\n".join(self._data) if whole else "")
        empty = not self._size and event.name == "message"
        self._begin()
        return None if empty else event
