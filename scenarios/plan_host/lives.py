"""What a plan host keeps beside its snapshots: its lives, its ended runs, a commit on its way."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, cast

from worker_under_test.checkpoint import Snapshot

if TYPE_CHECKING:
    from pathlib import Path

_LIVES, _ENDED, _ON_ITS_WAY = "lives.txt", "ended.txt", "on_its_way.json"


class Lives:
    """Small facts in files; each is written in one call.

    Args:
        directory: The worker's directory.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def begin(self) -> int:
        """Note that a life begins; return how many ended in a crash before."""
        marks = self._read(_LIVES)
        self._append(_LIVES, "begun")
        return marks.count("begun") - marks.count("ended")

    def end(self) -> None:
        """Note that a life ends well; nothing is on its way any more."""
        (self._directory / _ON_ITS_WAY).unlink(missing_ok=True)
        self._append(_LIVES, "ended")

    def end_run(self, run_id: str) -> None:
        """Note that a run has ended, and is not to be looked at again."""
        self._append(_ENDED, run_id)

    def ended(self) -> list[str]:
        """Return the runs that have ended."""
        return self._read(_ENDED)

    def send(self, snapshot: Snapshot) -> None:
        """Note a commit that may arrive after the death of this process."""
        facts = [snapshot.run_id, snapshot.seq, snapshot.status, list(snapshot.done)]
        path = self._directory / _ON_ITS_WAY
        path.with_suffix(".tmp").write_text(json.dumps(facts), encoding="utf-8")
        path.with_suffix(".tmp").replace(path)

    def sent(self, run_id: str) -> Snapshot | None:
        """Return the commit of a run that an earlier life had on its way."""
        try:
            text = (self._directory / _ON_ITS_WAY).read_text(encoding="utf-8")
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
