"""A progress bar for a run on a terminal; a line now and then where there is no terminal."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from harness.model.events import (
    ComparingStarted,
    Event,
    ExperimentCompared,
    ExperimentFinished,
    Interrupted,
    Planned,
    RunFailed,
    RunStarted,
    ShorterTried,
    ShrinkingStarted,
)
from harness.report.output import Output, Surroundings

if TYPE_CHECKING:
    from pathlib import Path

    from harness.report.recorded_run import RecordedRun

_LINE_EVERY = 100
"""Where there is no terminal: after how many experiments a line says how far it is."""


class ProgressBar(Output):
    """Shows how far a run is.

    Args:
        surroundings: Where to show it.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        self._console = console = surroundings.console
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[verdicts]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task: TaskID | None = None
        self._planned = 0
        self._verdicts: Counter[str] = Counter()

    def start(self, _directory: Path | None) -> None:
        """Show the bar."""
        self._progress.start()

    def close(self, _run: RecordedRun | None) -> None:
        """Leave the bar as it is."""
        # Older versions of rich end even a bar that is disabled with an empty line.
        if not self._progress.disable:
            self._progress.stop()

    def handle(self, event: Event) -> None:
        """Move the bar, or print a line where there is no terminal."""
        match event:
            case RunStarted():
                what = event.tier or "one schedule"
                self._begin(what, "warming up")
                scenarios, lanes = len(event.scenarios), event.lanes
                self._print_line(
                    f"{what}: {scenarios} scenario{'s' * (scenarios != 1)}, seed {event.seed}, "
                    f"{lanes} lane{'s' * (lanes != 1)}"
                )
            case Planned():
                self._planned += event.experiments
                self._update()
            case ExperimentFinished() | ExperimentCompared() | ShorterTried():
                self._verdicts[event.result.verdict.value] += 1
                self._update()
                done = self._verdicts.total()
                if done % _LINE_EVERY == 0:
                    self._print_line(f"{done} of {self._planned} so far: {self._counted()}")
            case ComparingStarted():
                self._begin("an interpreter per incarnation", "starting")
                self._planned = event.experiments
                self._verdicts.clear()
            case ShrinkingStarted():
                count = f"{event.failures} failure{'s' * (event.failures != 1)}"
                self._begin(f"shrinking {count}", "at most")
                self._planned = event.most
                self._verdicts.clear()
                self._print_line(f"shrinking {count}: at most {event.most} experiments")
            case Interrupted() | RunFailed():
                self._print_line("stopping: what has finished is recorded")
            case _:
                pass

    def _begin(self, what: str, verdicts: str) -> None:
        self._task = self._progress.add_task(what, total=None, verdicts=verdicts)

    def _print_line(self, text: str) -> None:
        if not self._console.is_terminal:
            self._console.print(text)

    def _update(self) -> None:
        if self._task is not None:
            self._progress.update(
                self._task,
                total=self._planned,
                completed=self._verdicts.total(),
                verdicts=self._counted() or "running",
            )

    def _counted(self) -> str:
        return ", ".join(f"{n} {verdict}" for verdict, n in sorted(self._verdicts.items()))
