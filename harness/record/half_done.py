"""A run that is not over, as its journal shows it: how far it is, and what it has found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.images.run_folder import RunFolder
from harness.model.result import Verdict
from harness.record.journal_content import is_being_written, read_journal

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.result import ExperimentResult
    from harness.record.journal_content import JournalContent


@dataclass(frozen=True, slots=True)
class HalfDone:
    """A run that is not over.

    Attributes:
        directory: The run's directory.
        content: What its journal says.
        alive: Whether a process is still writing it.
    """

    directory: Path
    content: JournalContent
    alive: bool

    @property
    def results(self) -> tuple[ExperimentResult, ...]:
        """What the experiments of the plan came to, in the order in which they finished."""
        return tuple(each.result for each in self.content.finished if each.asked.kept)

    @property
    def planned(self) -> int:
        """How many experiments of the plan were asked for; what they show may ask for more."""
        return sum(each["planned"] for each in self.content.planned if each["kept"])

    @property
    def others(self) -> int:
        """How many experiments have finished that compare or shrink others."""
        return sum(not each.asked.kept for each in self.content.finished)

    @property
    def verdicts(self) -> Counter[Verdict]:
        """How many experiments came to each verdict."""
        return Counter(result.verdict for result in self.results)

    @property
    def broken(self) -> tuple[ExperimentResult, ...]:
        """The experiments that are broken."""
        return tuple(result for result in self.results if result.verdict is Verdict.BROKEN)

    @property
    def sentence(self) -> str:
        """How far the run is, in one sentence."""
        state = "it is still running" if self.alive else "it was cut short"
        others = f", and {self.others} that compare or shrink" if self.others else ""
        return (
            f"{self.directory} is not over: {len(self.results)} of at least {self.planned} "
            f"experiments have finished{others}; {state}"
        )

    @property
    def how_to_go_on(self) -> str:
        """What to call next."""
        if self.content.header["command"] is None:
            return "nobody can go on with it: run again what began it"
        if self.alive:
            return "wait for its end"
        return f"crash-harness run --resume {self.directory} goes on with it"


def half_done(path: Path) -> HalfDone | None:
    """Return what is known of a run that is not over; None for one that has no journal.

    Args:
        path: The run's directory, the folder of a failure in it, or a file in either.

    Raises:
        UsageError: The journal cannot be read.
    """
    folder = path if path.is_dir() else path.parent
    for directory in (folder, folder.resolve().parent.parent):
        if RunFolder(directory).journal.exists():
            return HalfDone(directory, read_journal(directory), is_being_written(directory))
    return None
