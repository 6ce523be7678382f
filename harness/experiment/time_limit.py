"""A limit for code of the user that runs in one of our processes: an oracle, a module's import.

Only Python's own code can be ended so; a call into a library that never returns cannot.
"""

from __future__ import annotations

import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness.model.errors import DeadlineError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_AGAIN_S = 1.0
"""How long after the limit the code is ended again that has caught what ended it."""


class TimeIsUp(BaseException):
    """The limit was reached."""


@contextmanager
def time_limit(limit_s: float, what: str) -> Iterator[DeadlineError]:
    """End the code below when it takes too long; without effect outside the main thread.

    A timer of the surroundings (`signal.setitimer`) goes on afterwards.

    Args:
        limit_s: How long it may take, in seconds.
        what: What is waited for, for the message.

    Yields:
        The error that says that it took longer, for code that goes on after `TimeIsUp`.

    Raises:
        DeadlineError: It took longer.
    """
    late = DeadlineError(what, round(limit_s, 1))
    if threading.current_thread() is not threading.main_thread():
        yield late
        return
    handler = signal.signal(signal.SIGALRM, _end)
    began = time.monotonic()
    rest_s, interval_s = signal.setitimer(signal.ITIMER_REAL, limit_s, _AGAIN_S)
    try:
        yield late
    except TimeIsUp:
        raise late from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if rest_s:
            left_s = rest_s - (time.monotonic() - began)
            signal.setitimer(signal.ITIMER_REAL, max(left_s, 0.001), interval_s)


def _end(_number: int, _frame: FrameType | None) -> None:
    raise TimeIsUp
