"""The event log: one JSON object a line, written while the run goes, or from its record."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import TYPE_CHECKING

from harness.images.run_folder import RunFolder
from harness.model.result import ExperimentResult
from harness.report.output import Output, Surroundings, write_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import TextIO

    from harness.model.canonical_json import Json
    from harness.model.events import Event
    from harness.record.run_schema import RunRecord
    from harness.report.recorded_run import RecordedRun


class EventLog(Output):
    """Writes each event to ``events.ndjson`` at once, so that a run that is cut short left a log.

    Args:
        _surroundings: Not used.
    """

    def __init__(self, _surroundings: Surroundings) -> None:
        self._file: TextIO | None = None

    def start(self, directory: Path | None) -> None:
        """Begin the log."""
        if directory is not None:
            self._file = RunFolder(directory).events.open("a", encoding="ascii", buffering=1)

    def handle(self, event: Event) -> None:
        """Write an event."""
        if self._file is not None:
            self._file.write(event_line(event))

    def close(self, run: RecordedRun | None) -> None:
        """End the log; of an old run that has none, write what its record knows."""
        if self._file is not None:
            self._file.close()
        elif run is not None and not run.folder.events.exists():
            write_text(run.folder.events, "".join(ndjson(run.record)))


def event_line(event: Event) -> str:
    """Return the line of an event: its name, and what it says under the names of its fields."""
    said: dict[str, Json] = {}
    for field in fields(event):
        value = getattr(event, field.name)
        if isinstance(value, ExperimentResult):
            said |= _about(value)
        elif isinstance(value, tuple):
            said[field.name] = list(value)
        else:
            said[field.name] = round(value, 3) if isinstance(value, float) else value
    name = re.sub("(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()
    return _line(name, said)


def _about(result: ExperimentResult) -> dict[str, Json]:
    return {
        "id": result.experiment_id,
        "seed": result.seed,
        "verdict": result.verdict.value,
        "oracles": list(result.oracles),
        "fingerprint": result.fingerprint,
        "seconds": round(result.seconds, 3),
    }


def ndjson(record: RunRecord) -> Iterator[str]:
    """Give the lines of the log as far as a record knows them; durations only of the slowest."""
    seconds = {row["id"]: row["seconds"] for row in record["timing"]["slowest"]}
    yield _line(
        "run_started",
        {
            "scenarios": [row["name"] for row in record["scenarios"]],
            "tier": record["tier"],
            "seed": record["seed"],
            "lanes": record["timing"]["lanes"],
        },
    )
    yield _line("planned", {"experiments": len(record["experiments"])})
    for row in record["experiments"]:
        said: dict[str, Json] = {
            "id": row["id"],
            "seed": row["seed"],
            "verdict": row["verdict"],
            "oracles": sorted({violation["oracle"] for violation in row["violations"]}),
            "fingerprint": row["fingerprint"],
        }
        if row["id"] in seconds:
            said["seconds"] = seconds[row["id"]]
        yield _line("experiment_finished", said)
    if record["interrupted"]:
        yield _line("interrupted", {"why": record["interrupted"]})
    yield _line("run_finished", {"seconds": record["timing"]["seconds"]})


def _line(event: str, said: dict[str, Json]) -> str:
    # ASCII: a control character or half a surrogate pair is an escape, and a line is a line.
    return json.dumps({"event": event, **said}, ensure_ascii=True) + "\n"
