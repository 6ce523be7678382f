"""Who is told of a run while it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.events import Event
    from harness.record.run_schema import RunRecord


class RunHandler(Protocol):
    """What is told of a run: of each event when it happens, and of the record at the end."""

    def start(self, directory: Path | None) -> None:
        """Begin.

        Args:
            directory: Folder of the run, or None when nothing is written down.
        """

    def handle(self, event: Event) -> None:
        """Take notice of an event."""

    def close(self, record: RunRecord | None) -> None:
        """End; nothing more will come.

        Args:
            record: What was written down, or None when nothing was.
        """


class _Nobody:
    """Is told of a run that nobody watches."""

    def start(self, directory: Path | None) -> None:
        pass

    def handle(self, event: Event) -> None:
        pass

    def close(self, record: RunRecord | None) -> None:
        pass


NOBODY = _Nobody()
