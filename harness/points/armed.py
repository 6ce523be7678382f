"""What an armed process does at a crash point: count, write the trace, stop if ordered.

Never loaded in a process that is not to be armed. The trace line is on its way to the file, in one
``write``, before the process stops, so a supervisor that sees the stop can read which hit it is.
"""

from __future__ import annotations

import _thread
import json
import os
import signal
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

from harness.points.trace_file import TraceFile

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    PlainStop: TypeAlias = tuple[str, str, str, int]
    _Signature: TypeAlias = tuple[int, int, int] | None


_PF_EXITING = 0x4
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
    """The armed state of a process, and of the children that it forks.

    **Children** count on: as soon as a process has forked, it and its children take turns at their
    points, and each reads first what the others have written. So a hit has one number in the
    whole family. A child that is ordered to stop stops the *leader* first, the process that was
    armed and that the supervisor waits for, then itself. Whoever waits for its turn meanwhile has
    not reached its point yet, and obeys the orders of that later time.

    **Signal handlers** may hit a point while their thread is at one: the inner hit is whole before
    the outer one goes on. What is changed in between is one object at a time, by one call.

    Args:
        trace: Path of the file to which every hit is written.
        stops: Where to stop until the process has been stopped for the first time.
        orders: Path of a file with later orders. It is read each time the process was stopped and
            goes on, so a supervisor can change them while the process stands still.
    """

    def __init__(self, trace: str, stops: Sequence[StopOrder], orders: str) -> None:
        self._orders = orders
        self._trace = TraceFile(trace)
        self._lock = _thread.RLock()
        self._main = _thread.get_ident()
        self._leader = os.getpid()
        self._leaders_parent = os.getppid()
        self._pid = 0
        self._has_family = False
        self._has_turn = False
        self._read_to = 0
        self._counts: dict[tuple[str, str, str], count[int]] = {}
        self._times_stopped = 0
        self._obeyed = _Obeyed((0, None), stops)
        os.register_at_fork(
            before=self._before_fork,
            after_in_parent=self._after_fork,
            after_in_child=self._begin_as_child,
        )

    @classmethod
    def from_file(cls, orders: str) -> Armed:
        """Read first orders from a file, as a program does that was started with ``exec``.

        Args:
            orders: Path of a JSON file ``{"trace": PATH, "stops": [...]}``. A stop is an object
                with the fields of `StopOrder`.
        """
        first = _read(orders)
        return cls(first["trace"], _stops(first), orders)

    def hit(self, label: str, context: dict[str, object]) -> None:
        """Count a hit, write it to the trace, and stop the process if it was ordered here.

        Safe in any thread, in a signal handler that interrupts it, and in a forked child.

        Args:
            label: Label of the point.
            context: Its context; values are turned into text.
        """
        texts = {key: str(value) for key, value in context.items()}
        # Held while the process is stopped: another thread comes to its point when that is over.
        with self._lock:
            if not self._trace.is_ready():
                return
            if not self._has_family or self._has_turn:
                self._hit(label, texts)
                return
            self._has_turn = True
            try:
                self._trace.lock()
                self._catch_up()
                self._hit(label, texts)
                self._read_to = self._trace.end
            finally:
                self._has_turn = False
                self._trace.unlock()

    def _hit(self, label: str, texts: dict[str, str]) -> None:
        hits = {"": self._count(label, "", "")}
        for key, value in texts.items():
            hits[key] = self._count(label, key, value)
        stopping = self._orders_now().has(label, texts, hits) and self._can_stop()
        line = {"label": label, "context": texts, "hits": hits, "stop": stopping}
        if self._pid:
            line |= {"child": True, "pid": self._pid}
        if _thread.get_ident() != self._main:
            line["thread"] = True
        if self._trace.write(_ENCODER.encode(line).encode() + b"\n") and stopping:
            self._stop()

    def _stop(self) -> None:
        self._times_stopped += 1
        if self._pid:
            os.kill(self._leader, signal.SIGSTOP)
        # A signal that a thread sends to itself is delivered before the call returns, so the
        # calling thread goes no further; SIGSTOP then stops the whole process.
        signal.pthread_kill(_thread.get_ident(), signal.SIGSTOP)
        self._orders_now()

    def _can_stop(self) -> bool:
        """Tell whether somebody would see the stop: nobody waits for a child without a leader."""
        return not self._pid or _parent_of(self._leader) == self._leaders_parent

    def _count(self, label: str, key: str, value: str) -> int:
        counted = self._counts.get((label, key, value))
        if counted is None:
            counted = self._counts.setdefault((label, key, value), count(1))
        return next(counted)

    def _orders_now(self) -> _Obeyed:
        """Read the orders again if this process was stopped, or another of its family was."""
        seen = self._times_stopped, _signature(self._orders) if self._has_family else None
        if self._obeyed.seen != seen:
            try:
                self._obeyed = _Obeyed(seen, _stops(_read(self._orders)))
            except (OSError, ValueError):  # none yet, or gone with the directory
                self._obeyed = self._obeyed.at(seen)
        return self._obeyed

    def _catch_up(self) -> None:
        """Take over what others of the family have counted since this process was last here."""
        begin = self._read_to
        new = self._trace.read_from(begin)
        if not new:
            return
        counted: dict[tuple[str, str, str], count[int]] = {}
        for text in new.splitlines():
            with suppress(ValueError, KeyError, TypeError, AttributeError):  # not a line of ours
                line = json.loads(text)
                for key, number in line["hits"].items():
                    value = line["context"].get(key, "")
                    counted[line["label"], key, value] = count(number + 1)
        if self._read_to == begin:  # else a signal handler has done it meanwhile
            self._counts.update(counted)
            self._read_to = begin + len(new)

    def _before_fork(self) -> None:
        """Let no thread be in the middle of a hit, or the child would never see its end."""
        self._lock.acquire()
        if not self._has_family and self._trace.is_ready():
            self._read_to = self._trace.end

    def _after_fork(self) -> None:
        self._has_family = True
        self._lock.release()

    def _begin_as_child(self) -> None:
        self._lock = _thread.RLock()
        self._main = _thread.get_ident()
        self._pid = os.getpid()
        self._has_family = True
        self._has_turn = False


class _Obeyed:
    """Orders as they are obeyed, and what was seen when they were read."""

    def __init__(self, seen: tuple[int, _Signature], stops: Sequence[StopOrder]) -> None:
        self.seen = seen
        self._stops = stops
        self._every = any(stop.label == "*" for stop in stops)
        self._by_label: dict[str, list[StopOrder]] = {}
        for stop in stops:
            self._by_label.setdefault(stop.label, []).append(stop)

    def at(self, seen: tuple[int, _Signature]) -> _Obeyed:
        """Return the same orders, seen again."""
        return _Obeyed(seen, self._stops)

    def has(self, label: str, texts: dict[str, str], hits: dict[str, int]) -> bool:
        """Tell whether a stop is ordered at a hit."""
        return self._every or any(
            (not stop.key or texts.get(stop.key) == stop.value)
            and stop.ordinal in (0, hits[stop.key])
            for stop in self._by_label.get(label, ())
        )


def _parent_of(pid: int) -> int:
    """Return the parent of a process, or 0 if that is ending or has ended (proc(5))."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - a point is to be light
            _state, parent, *_, flags = file.read().rpartition(b")")[2].split()[:7]
    except OSError:
        return 0
    return 0 if int(flags) & _PF_EXITING else int(parent)


def _signature(path: str) -> _Signature:
    try:
        status = os.stat(path)  # noqa: PTH116 - a point is to be light
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def write_orders(path: str, trace: str, stops: Sequence[StopOrder]) -> None:
    """Write an orders file.

    Args:
        path: Where.
        trace: Path of the file to which every hit is written.
        stops: Where to stop.
    """
    text = json.dumps({"trace": trace, "stops": [asdict(stop) for stop in stops]})
    # All at once: children of a process that stands still may be reading.
    new = Path(f"{path}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def _read(path: str) -> _Orders:
    return cast("_Orders", json.loads(Path(path).read_text(encoding="utf-8")))


def _stops(orders: _Orders) -> list[StopOrder]:
    return [StopOrder(**stop) for stop in orders["stops"]]
