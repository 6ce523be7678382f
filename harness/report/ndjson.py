"""The event log: one JSON object a line, written while the run goes, or from its record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Self

from harness.model.events import Event, ExperimentFinished, Planned, RunFinished, RunStarted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.model.canonical_json import Json
    from harness.record.run_schema import RunRecord


class EventLog:
    """Listens to a run and writes each event at once, so that a run that is cut short left a log.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="ascii", buffering=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()

    def __call__(self, event: Event) -> None:
        """Write an event."""
        match event:
            case RunStarted():
                self._write(
                    "run_started",
                    scenarios=list(event.scenarios),
                    tier=event.tier,
                    seed=event.seed,
                    lanes=event.lanes,
                )
            case Planned():
                self._write("planned", experiments=event.experiments)
            case ExperimentFinished():
                result = event.result
                self._write(
                    "experiment_finished",
                    id=result.experiment_id,
                    seed=result.seed,
                    verdict=result.verdict.value,
                    oracles=list(result.oracles),
                    fingerprint=result.fingerprint,
                    seconds=round(result.seconds, 3),
                )
            case RunFinished():
                self._write("run_finished", seconds=round(event.seconds, 3))

    def _write(self, event: str, **fields: Json) -> None:
        self._file.write(_line(event, fields))


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
        fields: dict[str, Json] = {
            "id": row["id"],
            "seed": row["seed"],
            "verdict": row["verdict"],
            "oracles": sorted({violation["oracle"] for violation in row["violations"]}),
            "fingerprint": row["fingerprint"],
        }
        if row["id"] in seconds:
            fields["seconds"] = seconds[row["id"]]
        yield _line("experiment_finished", fields)
    yield _line("run_finished", {"seconds": record["timing"]["seconds"]})


def _line(event: str, fields: dict[str, Json]) -> str:
    # ASCII: a control character or half a surrogate pair is an escape, and a line is a line.
    return json.dumps({"event": event, **fields}, ensure_ascii=True) + "\n"
