"""The files of a plan host beside its snapshots: starts, ends, ended runs, a commit in flight."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, cast

from worker_under_test.checkpoint import Snapshot

if TYPE_CHECKING:
    from pathlib import Path

_INCARNATIONS, _ENDED, _IN_FLIGHT = "incarnations.txt", "ended.txt", "in_flight.json"


class IncarnationLog:
    """Small facts in files; each is written in one call.

    Args:
        directory: The worker's directory.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def begin(self) -> int:
        """Note that an incarnation begins; return how many before it ended in a crash."""
        marks = self._read(_INCARNATIONS)
        self._append(_INCARNATIONS, "begun")
        return marks.count("begun") - marks.count("ended")

    def end(self) -> None:
        """Note that an incarnation ends well; no commit is in flight any more."""
        (self._directory / _IN_FLIGHT).unlink(missing_ok=True)
        self._append(_INCARNATIONS, "ended")

    def end_run(self, run_id: str) -> None:
        """Note that a run has ended, and is not to be looked at again."""
        self._append(_ENDED, run_id)

    def ended(self) -> list[str]:
        """Return the runs that have ended."""
        return self._read(_ENDED)

    def send(self, snapshot: Snapshot) -> None:
        """Note a commit that may arrive after the death of this process."""
        facts = [snapshot.run_id, snapshot.seq, snapshot.status, list(snapshot.done)]
        path = self._directory / _IN_FLIGHT
        path.with_suffix(".tmp").write_text(json.dumps(facts), encoding="utf-8")
        path.with_suffix(".tmp").replace(path)

    def sent(self, run_id: str) -> Snapshot | None:
        """Return the commit of a run that an earlier incarnation left in flight."""
        try:
            text = (self._directory / _IN_FLIGHT).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        run, seq, status, done = cast("tuple[str, int, str, list[str]]", json.loads(text))
        return Snapshot(run, seq, status, done) if run == run_id else None

    def _append(self, name: str, line: str) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self._directory / name, flags, 0o644)
        try:
            os.write(descriptor, f"{line}\n".encode())
        finally:
            os.close(descriptor)

    def _read(self, name: str) -> list[str]:
        try:
            return (self._directory / name).read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
