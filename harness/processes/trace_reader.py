"""Reading the trace of an incarnation as it grows, within bounds."""

from __future__ import annotations

import json
from collections import Counter
from typing import Final

from harness.model.errors import HarnessError
from harness.model.trace import Hit

MOST_HITS: Final = 100_000
"""How many hits of an incarnation are kept; a run keeps those of all its experiments."""

MOST_OF_A_LABEL: Final = 100
"""How many of each label are kept beyond that, so that a busy label hides no other."""

_SHOWN_BYTES = 100
_STOPPED = b'"stop":true'
_BEGIN = b'{"label":"'


class DamagedTraceError(HarnessError):
    """Something else than crash points has written to a trace."""


class TraceReader:
    """The trace of one incarnation.

    Args:
        path: Where it is.
        number: The incarnation, for messages.

    Attributes:
        hits: What was read and kept, in order: every hit at which the incarnation stopped itself,
            and of the others as many as the bounds allow, the first ones.
        left_out: How many were read and not kept.
    """

    def __init__(self, path: str, number: int) -> None:
        self.path = path
        self.hits: list[Hit] = []
        self.left_out = 0
        self._number = number
        self._bytes = 0
        self._labels: Counter[bytes] = Counter()

    def read(self) -> None:
        """Read what is new.

        Raises:
            DamagedTraceError: It has a line that no point has written.
        """
        try:
            with open(self.path, "rb") as trace:  # noqa: PTH123 - in every experiment
                trace.seek(self._bytes)
                new = trace.read()
        except FileNotFoundError:  # it died before it could do anything
            return
        # A line is written at once, but a reader may come in between.
        whole = new[: new.rfind(b"\n") + 1]
        self._bytes += len(whole)
        for line in whole.split(b"\n")[:-1]:
            label = line[len(_BEGIN) : line.find(b'"', len(_BEGIN))]
            self._labels[label] += 1
            if (
                len(self.hits) < MOST_HITS
                or self._labels[label] <= MOST_OF_A_LABEL
                or _STOPPED in line  # quotes in a text are escaped, so no text has this
            ):
                self.hits.append(self._hit(line))
            else:
                self.left_out += 1

    def _hit(self, line: bytes) -> Hit:
        try:
            hit = Hit(**json.loads(line))
            counts = [*hit.hits.values(), hit.pid]
            if isinstance(hit.label, str) and {type(count) for count in counts} <= {int}:
                return hit
        except (ValueError, TypeError, AttributeError):
            pass
        raise DamagedTraceError(
            f"the trace of incarnation {self._number} has a line that no point has written: "
            f"{line[:_SHOWN_BYTES]!r}"
        )
