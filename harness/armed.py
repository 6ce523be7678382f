"""What an armed process does at a crash point: count, write the trace, stop if ordered.

Loaded only by `harness.points.arm`. The trace line is on its way to the file, in one ``write``,
before the process stops, so a supervisor that sees the stop can read which hit it is.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Stop:
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


class Armed:
    """The armed state of this process.

    Args:
        orders_path: Path of the orders file (see `harness.points.arm`).
    """

    def __init__(self, orders_path: str) -> None:
        self._orders_path = Path(orders_path)
        self._lock = threading.Lock()
        self._label_hits: Counter[str] = Counter()
        self._context_hits: Counter[tuple[str, str, str]] = Counter()
        trace = self._read_orders()
        self._trace_fd = os.open(trace, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC)

    def _read_orders(self) -> str:
        orders = json.loads(self._orders_path.read_text(encoding="utf-8"))
        stops = [Stop(**stop) for stop in orders["stops"]]
        self._every = [stop for stop in stops if stop.label == "*"]
        self._stops: dict[str, list[Stop]] = {}
        for stop in stops:
            self._stops.setdefault(stop.label, []).append(stop)
        return str(orders["trace"])

    def hit(self, label: str, context: dict[str, object]) -> None:
        """Count a hit, write it to the trace, and stop the process if it was ordered here.

        Args:
            label: Label of the point.
            context: Its context; values are turned into text.
        """
        texts = {key: str(value) for key, value in context.items()}
        with self._lock:
            self._label_hits[label] += 1
            hits = {"": self._label_hits[label]}
            for key, value in texts.items():
                self._context_hits[label, key, value] += 1
                hits[key] = self._context_hits[label, key, value]
            stopping = bool(self._every) or any(
                self._meets(stop, texts, hits) for stop in self._stops.get(label, ())
            )
            line = {"label": label, "context": texts, "hits": hits, "stop": stopping}
            os.write(self._trace_fd, json.dumps(line, separators=(",", ":")).encode() + b"\n")
        if stopping:
            # A signal that a thread sends to itself is delivered before the call returns, so
            # the calling thread goes no further; SIGSTOP then stops the whole process.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
            with self._lock:
                self._read_orders()

    @staticmethod
    def _meets(stop: Stop, texts: dict[str, str], hits: dict[str, int]) -> bool:
        if stop.key and texts.get(stop.key) != stop.value:
            return False
        return stop.ordinal in (0, hits[stop.key])
