"""A progress bar on the terminal while a run goes on; lines now and then when it is no terminal."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from harness.model.events import Event, ExperimentFinished, Planned, RunFinished, RunStarted

if TYPE_CHECKING:
    from rich.console import Console


_LINE_EVERY = 100
"""Where there is no terminal: after how many experiments a line says how far it is."""


class ProgressBar:
    """Listens to a run and shows how far it is.

    Args:
        console: Where to show it.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
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

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_error: object) -> None:
        # Older versions of rich end even a bar that is disabled with an empty line.
        if not self._progress.disable:
            self._progress.stop()

    def __call__(self, event: Event) -> None:
        """Take notice of an event."""
        match event:
            case RunStarted():
                what = event.tier or "one schedule"
                self._task = self._progress.add_task(what, total=None, verdicts="warming up")
                if not self._console.is_terminal:
                    count = len(event.scenarios)
                    self._console.print(
                        f"{what}: {count} scenario{'s' * (count != 1)}, seed {event.seed}, "
                        f"{event.lanes} lane{'s' * (event.lanes != 1)}"
                    )
            case Planned():
                self._planned += event.experiments
                self._update()
            case ExperimentFinished():
                self._verdicts[event.result.verdict.value] += 1
                self._update()
                done = self._verdicts.total()
                if not self._console.is_terminal and done % _LINE_EVERY == 0:
                    self._console.print(f"{done} of {self._planned} so far: {self._counted()}")
            case RunFinished():
                self._update()

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
