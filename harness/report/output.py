"""What an output is: it is told of a run while it goes on, and renders the record at its end.

An output knows the events and the record, and no engine. To add one, write a file with a class like
the others and give it a line in `harness.report.outputs.OUTPUTS`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from rich.console import Console

    from harness.model.events import Event
    from harness.record.failure_schema import FailureRecord
    from harness.report.recorded_run import RecordedRun


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where the command runs.

    Attributes:
        console: The terminal, or what stands for it.
        say: Is given what must go to standard output as it is, a line at a time.
        environment: Environment variables.
    """

    console: Console
    say: Callable[[str], None]
    environment: Mapping[str, str]


class Output(Protocol):
    """One output. Each method does nothing unless an output says otherwise.

    A record of old is rendered by `close` or `write_failure` alone, without a `start`.
    """

    def start(self, directory: Path | None) -> None:  # noqa: ARG002
        """Begin with a run.

        Args:
            directory: The run's folder, or None when nothing is written down.
        """
        return

    def handle(self, event: Event) -> None:  # noqa: ARG002
        """Take notice of what happens in the run."""
        return

    def close(self, run: RecordedRun | None) -> None:  # noqa: ARG002
        """Render the run and let go of everything; nothing more will come.

        Args:
            run: The run with its record, or None when there is nothing to render.
        """
        return

    def write_failure(self, folder: Path, record: FailureRecord) -> None:  # noqa: ARG002
        """Render one failure into its folder."""
        return


def write_text(path: Path, text: str) -> None:
    """Write a file, whole or not at all; what UTF-8 cannot hold is escaped.

    What stands there is replaced: a link is not followed, a pipe not waited for.
    """
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    try:
        with fresh.open("x", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        fresh.replace(path)
    except OSError:
        with suppress(OSError):
            fresh.unlink()
        raise
