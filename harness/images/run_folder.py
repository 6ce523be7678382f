"""Where everything of a run is: the one description of its folder.

::

    reports/runs/                        AllRuns
      latest -> 20260101T120000Z
      failures/FINGERPRINT -> ../…       failures that are open, over all runs
      20260101T120000Z/                  RunFolder
        results.json                     the record
        journal.ndjson                   what has finished, while the run is not over
        report.html, junit.xml, summary.md, annotations.txt, events.ndjson
        failures/FINGERPRINT/            FailureFolder
          failure.json                   its record
          report.html, ISSUE.md, repro.py, test_repro.py
          images/N-end                   what was durable when incarnation N had ended
          images/N-after-restart         and when the restarted worker was quiet
          control/N.output.txt           what incarnation N printed; its trace, its orders
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.images.deletion import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RESULTS = "results.json"
JOURNAL = "journal.ndjson"
FAILURE = "failure.json"

_FAILURES = "failures"
_CONTROL_LEGS = "control"


def end_image_name(number: int) -> str:
    """Return the name of the image of what was durable when an incarnation had ended."""
    return f"{number}-end"


def restart_image_name(number: int) -> str:
    """Return the name of the image of what was durable when a restarted one was quiet."""
    return f"{number}-after-restart"


@dataclass(frozen=True, slots=True)
class FailureFolder:
    """The folder of a failure.

    Attributes:
        path: Where it is.
    """

    path: Path

    @property
    def record(self) -> Path:
        """The record of the failure."""
        return self.path / FAILURE

    @property
    def report(self) -> Path:
        """Its page."""
        return self.path / "report.html"

    @property
    def issue(self) -> Path:
        """The draft of an issue."""
        return self.path / "ISSUE.md"

    @property
    def program(self) -> Path:
        """The program that runs it again."""
        return self.path / "repro.py"

    @property
    def test(self) -> Path:
        """The test that runs it again."""
        return self.path / "test_repro.py"

    @property
    def images(self) -> Path:
        """Directory of the crash images."""
        return self.path / "images"

    @property
    def control(self) -> Path:
        """Directory of orders, traces and output of the incarnations."""
        return self.path / "control"

    def end_image(self, number: int) -> Path:
        """Return where the image of the end of an incarnation is."""
        return self.images / end_image_name(number)

    def restart_image(self, number: int) -> Path:
        """Return where the image of a restarted, quiet incarnation is, if there is one."""
        return self.images / restart_image_name(number)

    def output(self, number: int) -> Path:
        """Return where the output of an incarnation is."""
        return self.control / f"{number}.output.txt"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of a run.

    Attributes:
        path: Where it is.
    """

    path: Path

    @property
    def record(self) -> Path:
        """The record of the run."""
        return self.path / RESULTS

    @property
    def journal(self) -> Path:
        """The journal; it is there as long as the run is not over."""
        return self.path / JOURNAL

    @property
    def report(self) -> Path:
        """The page of the run."""
        return self.path / "report.html"

    @property
    def junit(self) -> Path:
        """The JUnit file."""
        return self.path / "junit.xml"

    @property
    def summary(self) -> Path:
        """The Markdown summary."""
        return self.path / "summary.md"

    @property
    def annotations(self) -> Path:
        """The annotations."""
        return self.path / "annotations.txt"

    @property
    def events(self) -> Path:
        """The log of events."""
        return self.path / "events.ndjson"

    @property
    def kept(self) -> Path:
        """Directory in which lanes put what broken experiments and control legs left."""
        return self.path / _FAILURES

    def failure(self, fingerprint: str) -> FailureFolder:
        """Return the folder of a failure."""
        return FailureFolder(self.kept / fingerprint)

    def failures(self) -> Iterator[FailureFolder]:
        """Give the folders that are there, of failures whether recorded or not, sorted."""
        if self.kept.is_dir():
            for path in sorted(self.kept.iterdir()):
                if path.name != _CONTROL_LEGS:
                    yield FailureFolder(path)

    def control_image(self, scenario: str) -> Path:
        """Return where the image is that a scenario's control leg left; see `control_image`."""
        return control_image(self.kept, scenario)

    def forget_control_legs(self) -> None:
        """Delete what control legs left; the records of the failures have what is shown of it."""
        with suppress(OSError):
            remove_tree(self.kept / _CONTROL_LEGS)
        with suppress(OSError):  # there are failures in it, or it was never made
            self.kept.rmdir()


@dataclass(frozen=True, slots=True)
class AllRuns:
    """The directory of all runs.

    Attributes:
        path: Where it is.
    """

    path: Path

    @property
    def latest(self) -> Path:
        """The link to the latest run."""
        return self.path / "latest"

    @property
    def open_failures(self) -> Path:
        """Directory of links to the failures that no later run has shown fixed."""
        return self.path / _FAILURES

    def link_target(self, run: RunFolder, fingerprint: str) -> str:
        """Return what the link of an open failure says: a path relative to `open_failures`."""
        return f"../{run.path.name}/{_FAILURES}/{fingerprint}"


def control_image(kept: Path, scenario: str) -> Path:
    """Return where the image is that the control leg of a scenario left when it was quiet.

    Args:
        kept: `RunFolder.kept`.
        scenario: Name of the scenario.
    """
    return kept / _CONTROL_LEGS / scenario
