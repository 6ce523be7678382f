"""Observations written to the log."""

from __future__ import annotations

import logging

_LOG = logging.getLogger("worker_under_test")


class LogObservation:
    """An `Observation` that writes one log line per event."""

    def event(self, name: str, error: BaseException | None = None, **about: str) -> None:
        """Write a line: a warning if there was an error, information otherwise."""
        level = logging.INFO if error is None else logging.WARNING
        _LOG.log(level, "%s %s%s", name, about or "", f": {error}" if error else "")
