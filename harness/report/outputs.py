"""The registry of outputs, which of them are wanted, and what calls them."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from harness.images.run_folder import FailureFolder, RunFolder
from harness.model.errors import UnknownNameError, UsageError
from harness.model.regular_file import shown_path
from harness.record.failure_schema import read_failure_record
from harness.record.run_schema import read_run
from harness.report.annotations import Annotations
from harness.report.html import HtmlPages
from harness.report.issue import IssueDrafts
from harness.report.junit import JUnitFile
from harness.report.markdown import MarkdownSummary
from harness.report.ndjson import EventLog
from harness.report.progress import ProgressBar
from harness.report.recorded_run import RecordedRun
from harness.report.repro_script import ReproScripts
from harness.report.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from harness.model.events import Event
    from harness.record.run_schema import RunRecord
    from harness.report.output import Output, Surroundings

    MakeOutput: TypeAlias = Callable[[Surroundings], Output]

SUMMARY = "summary"

OUTPUTS: dict[str, MakeOutput] = {
    "progress": ProgressBar,
    "ndjson": EventLog,
    "repro": ReproScripts,
    "html": HtmlPages,
    "issue": IssueDrafts,
    "junit": JUnitFile,
    "markdown": MarkdownSummary,
    "annotations": Annotations,
    SUMMARY: Summary,
}
"""Every output by its name, in the order in which they are told and closed."""

OF_A_RUN = ("progress", "repro", SUMMARY)
"""Outputs that every run of the command has."""
OF_A_RECORD = ("repro",)
"""Outputs that every old record gets when it is rendered again."""
NONE = "none"


def chosen(text: str | None, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return which outputs are wanted.

    Args:
        text: Names joined by commas; ``none`` for none, None for the usual ones: ``html``, and in
            GitHub Actions also ``markdown`` and ``annotations``.
        environment: Environment variables.

    Raises:
        UnknownNameError: A name is not known.
    """
    if text is None:
        if environment.get("GITHUB_ACTIONS") == "true":
            return ("html", "markdown", "annotations")
        return ("html",)
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in (*OUTPUTS, NONE):
            raise UnknownNameError("report", name, (*OUTPUTS, NONE))
    return tuple(name for name in dict.fromkeys(names) if name != NONE)


class Outputs:
    """Several outputs told as one.

    An output that fails is told nothing more and stops neither the run nor the others; its error is
    raised at the end.

    Args:
        names: Which outputs.
        surroundings: Where the command runs.
    """

    def __init__(self, names: Iterable[str], surroundings: Surroundings) -> None:
        wanted = frozenset(names)
        self._working = [make(surroundings) for name, make in OUTPUTS.items() if name in wanted]
        self._failed: list[tuple[Output, Exception]] = []
        self._directory: Path | None = None

    @property
    def directory(self) -> Path | None:
        """Folder of the run that they were told of, if it has one."""
        return self._directory

    def start(self, directory: Path | None) -> None:
        """Begin with a run; see `Output.start`."""
        self._directory = directory
        self._tell(lambda output: output.start(directory))

    def handle(self, event: Event) -> None:
        """Take notice of an event; see `Output.handle`."""
        self._tell(lambda output: output.handle(event))

    def close(self, record: RunRecord | None) -> None:
        """Render a run; see `Output.close`.

        Args:
            record: Its record, or None when there is none.

        Raises:
            Exception: That of the first output that failed.
        """
        run = None
        if record is not None and self._directory is not None:
            run = RecordedRun(self._directory, record)
        self._tell(lambda output: output.close(run))
        self._raise()

    def render_again(self, path: Path) -> None:
        """Render an old record.

        Args:
            path: A run's directory or a failure's folder, or the record in one.

        Raises:
            UsageError: There is no record, or it is of another version.
        """
        folder = path if path.is_dir() else path.parent
        if os.path.lexists(RunFolder(folder).record):
            self._directory = folder
            self.close(read_run(folder))
            return
        if not os.path.lexists(FailureFolder(folder).record):
            raise UsageError(f"no record of a run or of a failure at {shown_path(path)}")
        record = read_failure_record(folder)
        self._tell(lambda output: output.write_failure(folder, record))
        self._raise()

    def _tell(self, call: Callable[[Output], None]) -> None:
        for output in tuple(self._working):
            try:
                call(output)
            except Exception as error:  # noqa: BLE001 - raised at the end
                self._working.remove(output)
                self._failed.append((output, error))

    def _raise(self) -> None:
        for output, _ in self._failed:
            with suppress(Exception):  # it has failed already, and lets go of what it holds
                output.close(None)
        for _, error in self._failed:
            raise error
