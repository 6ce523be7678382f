"""A run as it was written down: what outputs are given to render."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from harness.images.run_folder import RunFolder
from harness.model.errors import UsageError
from harness.record.failure_schema import read_failure_record
from harness.record.run_schema import read_run

if TYPE_CHECKING:
    from harness.record.failure_schema import FailureRecord
    from harness.record.run_schema import RunRecord

_FINGERPRINT = re.compile("[0-9a-f]{16}")

_PAGES = 100
"""How many failures of a run are rendered with it; others by `crash-harness report FOLDER`."""


@dataclass(frozen=True)
class RecordedRun:
    """A run's folder and its record.

    Attributes:
        directory: The folder.
        record: The content of ``results.json``.
    """

    directory: Path
    record: RunRecord

    @property
    def folder(self) -> RunFolder:
        """The names in the folder."""
        return RunFolder(self.directory)

    @cached_property
    def failures(self) -> dict[Path, FailureRecord]:
        """The failures by their folders, those that nobody expected first."""
        found = {}
        for row in self.record["experiments"]:
            folder = self.folder.failure(row["fingerprint"]).path
            # A failure that a later run showed fixed is no longer there. What is not a fingerprint,
            # and a link to elsewhere, would have pages written outside the run's folder.
            if not _FINGERPRINT.fullmatch(row["fingerprint"]) or folder.is_symlink():
                continue
            if folder.is_dir():
                found[folder] = read_failure_record(folder)
        return dict(sorted(found.items(), key=lambda item: item[1]["pin"] != "holds"))

    @property
    def shown(self) -> dict[Path, FailureRecord]:
        """The failures that are rendered together with the run."""
        return dict(list(self.failures.items())[:_PAGES])

    @cached_property
    def before(self) -> RunRecord | None:
        """The record of the run before, if there is one to compare with."""
        previous = Path(self.record["timing"]["previous"]).name
        if not previous:
            return None
        try:
            return read_run(self.directory.parent / previous)
        except UsageError:  # gone, or of another version: there is nothing to compare with
            return None
