"""SIGINT and SIGTERM as a request to stop that is heard between two experiments.

A handler that raises would do so anywhere: between a result and where it is kept, or in the middle
of a line of the event log. This one notes the signal and makes a pipe readable, which an executor
waits for beside its lanes.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from harness.model.errors import HarnessError

if TYPE_CHECKING:
    from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequestedError(HarnessError):
    """A run was asked to stop.

    Args:
        number: The signal.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(f"asked to stop by {signal.Signals(number).name}")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.number,)


class StopSignals:
    """Takes SIGINT and SIGTERM over while it is open; for the main thread alone.

    The first signal asks to stop. After it a second SIGINT raises `KeyboardInterrupt` at once, for
    somebody who does not want to wait until what was found is written down; a SIGTERM is passed
    over, as CI systems send one after a SIGINT. Once it has raised, SIGINT is ignored: another
    exception on the way out could leave lanes behind. A signal that is ignored stays ignored.

    Args:
        ends_program: Whether the program ends after a second SIGINT, so that SIGINT stays ignored
            until then; otherwise handlers are as before when this is closed.
    """

    def __init__(self, *, ends_program: bool = False) -> None:
        self._ends_program = ends_program
        self._number = 0
        self._raised = False
        # What `signal.signal` returns has no better type.
        self._before: dict[signal.Signals, Any] = {}
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_error: object) -> None:
        for number, handler in self._before.items():
            if not (self._ends_program and self._raised and number == signal.SIGINT):
                signal.signal(number, handler)
        os.close(self._reader)
        os.close(self._writer)

    def fileno(self) -> int:
        """Return a descriptor that becomes readable with the first signal."""
        return self._reader

    @property
    def received(self) -> bool:
        """Whether a signal has come."""
        return self._number != 0

    def check(self) -> None:
        """Go on unless a signal has come.

        Raises:
            StopRequestedError: One has.
        """
        if self._number:
            raise StopRequestedError(self._number)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if not self._number:
            self._number = number
            with suppress(OSError):  # closed already: the run is over
                os.write(self._writer, b"!")
        elif number == signal.SIGINT and not self._raised:
            self._raised = True
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            raise KeyboardInterrupt
