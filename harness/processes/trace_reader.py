"""Reading the trace of an incarnation as it grows, within bounds."""

from __future__ import annotations

import json
from collections import Counter
from typing import Final

from harness.model.errors import HarnessError
from harness.model.regular_file import open_regular
from harness.model.trace import Hit

MOST_HITS: Final = 100_000
"""How many hits of an incarnation are kept; a run keeps those of all its experiments."""

MOST_OF_A_LABEL: Final = 100
"""How many of each label are kept beyond that, so that a busy label hides no other."""

_SHOWN_BYTES = 100
_NOT_BY_US = (
    "a worker that writes into, or removes, what is beside its own directory loses its proof"
)
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
        is_there: Whether the file was there when it was read last.
    """

    def __init__(self, path: str, number: int) -> None:
        self.path = path
        self.hits: list[Hit] = []
        self.left_out = 0
        self.is_there = False
        self._number = number
        self._bytes = 0
        self._labels: Counter[bytes] = Counter()

    def read(self) -> None:
        """Read what is new.

        Raises:
            DamagedTraceError: It has a line that no point has written.
        """
        try:
            with open_regular(self.path) as trace:
                trace.seek(self._bytes)
                new = trace.read()
        except FileNotFoundError:
            self.is_there = False
            if not self._bytes:  # it died before it could do anything
                return
            raise self.removed() from None
        except OSError as error:
            raise DamagedTraceError(
                f"the trace of incarnation {self._number} cannot be read: {error.strerror}; "
                f"{_NOT_BY_US}"
            ) from None
        self.is_there = True
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

    def removed(self) -> DamagedTraceError:
        """Return the error that says so of a trace that is not there any more."""
        return DamagedTraceError(
            f"the trace of incarnation {self._number} was removed; {_NOT_BY_US}"
        )

    def _hit(self, line: bytes) -> Hit:
        try:
            hit = Hit(**json.loads(line))
            counts = [*hit.hits.values(), hit.pid]
            texts = [hit.label, *hit.context.values()]
            if (
                {type(count) for count in counts} <= {int}
                and {type(text) for text in texts} <= {str}
                and hit.hits.keys() == {"", *hit.context}
            ):
                return hit
        except (ValueError, TypeError, AttributeError, RecursionError):
            pass
        raise DamagedTraceError(
            f"the trace of incarnation {self._number} has a line that no point has written: "
            f"{line[:_SHOWN_BYTES]!r}; {_NOT_BY_US}"
        )
