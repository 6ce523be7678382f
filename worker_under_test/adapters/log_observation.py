"""Observations written to the log."""

from __future__ import annotations

import logging

_LOG = logging.getLogger("worker_under_test")


class LogObservation:
    """An `Observation` that writes one log line per event.

    Text that no encoding can carry, such as half of a surrogate pair from somebody's JSON, is
    written as its escape: a handler must not fail on what it is told.
    """

    def event(self, name: str, error: BaseException | None = None, **about: str) -> None:
        """Write a line: a warning if there was an error, information otherwise."""
        level = logging.INFO if error is None else logging.WARNING
        line = f"{name} {about or ''}{f': {error}' if error else ''}"
        _LOG.log(level, "%s", line.encode(errors="backslashreplace").decode())
