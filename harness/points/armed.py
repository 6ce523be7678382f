"""What an armed process does at a crash point: count, write the trace, stop if ordered.

Never loaded in a process that is not to be armed. The trace line is on its way to the file, in one
``write``, before the process stops, so a supervisor that sees the stop can read which hit it is.
"""

from __future__ import annotations

import _thread
import fcntl
import json
import os
import signal
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    PlainStop: TypeAlias = tuple[str, str, str, int]


_HIGH_FD = 500
_ENCODER = json.JSONEncoder(separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class StopOrder:
    """One order to stop.

    Attributes:
        label: Label of the point, or ``*`` for every point.
        key: Context key that selects, or empty.
        value: Text of the context value that selects.
        ordinal: The hit at which to stop, counted from 1 among the selected ones; 0 is every hit.
    """

    label: str
    key: str = ""
    value: str = ""
    ordinal: int = 0

    @property
    def plain(self) -> PlainStop:
        """The same in plain values, for another process."""
        return self.label, self.key, self.value, self.ordinal


class _StopFields(TypedDict):
    label: str
    key: str
    value: str
    ordinal: int


class _Orders(TypedDict):
    trace: str
    stops: list[_StopFields]


class Armed:
    """The armed state of a process.

    Args:
        trace: Path of the file to which every hit is written.
        stops: Where to stop until the process has been stopped for the first time.
        orders: Path of a file with later orders. It is read each time the process was stopped and
            goes on, so a supervisor can change them while the process stands still.
    """

    def __init__(self, trace: str, stops: Sequence[StopOrder], orders: str) -> None:
        self._orders = orders
        self._trace = trace
        # A signal handler may hit a point while its thread is at one.
        self._lock = _thread.RLock()
        self._main = _thread.get_ident()
        self._in_child = False
        self._hits: dict[tuple[str, str, str], int] = {}
        self._trace_fd = self._opened(os.O_CREAT)
        status = os.fstat(self._trace_fd)
        self._trace_is = status.st_dev, status.st_ino
        self._obey(stops)
        os.register_at_fork(after_in_child=self._begin_as_child)

    @classmethod
    def from_file(cls, orders: str) -> Armed:
        """Read first orders from a file, as a program does that was started with ``exec``.

        Args:
            orders: Path of a JSON file ``{"trace": PATH, "stops": [...]}``. A stop is an object
                with the fields of `StopOrder`.
        """
        first = _read(orders)
        return cls(first["trace"], _stops(first), orders)

    def _begin_as_child(self) -> None:
        """Go on in a forked child: another thread of the parent may have held the lock."""
        self._lock = _thread.RLock()
        self._main = _thread.get_ident()
        self._in_child = True

    def _opened(self, flags: int = 0) -> int:
        """Open the trace, out of the way of programs that count on low descriptors."""
        fd = os.open(self._trace, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | flags, 0o644)
        try:
            high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH_FD)
        except OSError:  # the limit of open files is lower
            return fd
        os.close(fd)
        return high

    def _write(self, line: bytes) -> None:
        """Write to the trace and to nothing else.

        A program that closes all descriptors, as daemons do, may have another file under the number
        by now; then the trace is opened again. If it is gone, nothing is written.
        """
        try:
            status = os.fstat(self._trace_fd)
            ours = (status.st_dev, status.st_ino) == self._trace_is
        except OSError:
            ours = False
        if not ours:
            try:
                self._trace_fd = self._opened()
            except OSError:
                return
        os.write(self._trace_fd, line)

    def _obey(self, stops: Sequence[StopOrder]) -> None:
        self._every = any(stop.label == "*" for stop in stops)
        self._stops: dict[str, list[StopOrder]] = {}
        for stop in stops:
            self._stops.setdefault(stop.label, []).append(stop)

    def hit(self, label: str, context: dict[str, object]) -> None:
        """Count a hit, write it to the trace, and stop the process if it was ordered here.

        Safe in any thread, in a signal handler that interrupts it, and in a forked child, which is
        never stopped.

        Args:
            label: Label of the point.
            context: Its context; values are turned into text.
        """
        texts = {key: str(value) for key, value in context.items()}
        with self._lock:
            hits = {"": self._count(label, "", "")}
            for key, value in texts.items():
                hits[key] = self._count(label, key, value)
            # Nobody waits for a child to stop: its hits are written down, and it goes on.
            stopping = not self._in_child and (
                self._every
                or any(self._meets(stop, texts, hits) for stop in self._stops.get(label, ()))
            )
            line = {"label": label, "context": texts, "hits": hits, "stop": stopping}
            if self._in_child:
                line["child"] = True
            if _thread.get_ident() != self._main:
                line["thread"] = True
            self._write(_ENCODER.encode(line).encode() + b"\n")
        if stopping:
            # A signal that a thread sends to itself is delivered before the call returns, so
            # the calling thread goes no further; SIGSTOP then stops the whole process.
            signal.pthread_kill(_thread.get_ident(), signal.SIGSTOP)
            with self._lock:
                self._obey(_stops(_read(self._orders)))

    def _count(self, label: str, key: str, value: str) -> int:
        self._hits[label, key, value] = hits = self._hits.get((label, key, value), 0) + 1
        return hits

    @staticmethod
    def _meets(stop: StopOrder, texts: dict[str, str], hits: dict[str, int]) -> bool:
        if stop.key and texts.get(stop.key) != stop.value:
            return False
        return stop.ordinal in (0, hits[stop.key])


def write_orders(path: str, trace: str, stops: Sequence[StopOrder]) -> None:
    """Write an orders file.

    Args:
        path: Where.
        trace: Path of the file to which every hit is written.
        stops: Where to stop.
    """
    text = json.dumps({"trace": trace, "stops": [asdict(stop) for stop in stops]})
    Path(path).write_text(text, encoding="utf-8")


def _read(path: str) -> _Orders:
    return cast("_Orders", json.loads(Path(path).read_text(encoding="utf-8")))


def _stops(orders: _Orders) -> list[StopOrder]:
    return [StopOrder(**stop) for stop in orders["stops"]]
