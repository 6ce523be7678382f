"""The record of a failure, put together from its result and from what it left on disk."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from harness.images.run_folder import FailureFolder
from harness.model.starts_again import STARTS_AGAIN
from harness.record.control_leg import control_row
from harness.record.failure_schema import FAILURE_SCHEMA
from harness.record.history import history
from harness.record.states import Held, read_held, state
from harness.record.strikes import strike_row
from harness.record.world_view import commands, effects, observe

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.canonical_json import Json
    from harness.model.result import ExperimentResult
    from harness.model.workload import Workload
    from harness.oracles.mailbox.worker_state import WorkerState
    from harness.record.failure_schema import (
        EnvironmentRow,
        FailureRecord,
        IncarnationRow,
        MinimalRow,
        RecordedDecision,
        StateRow,
        WorkloadRow,
    )
    from harness.record.masking import Masking
    from harness.record.outcome import ScenarioOutcome

_OUTPUT_BYTES = 4_000
_STATES = 12
_VIOLATIONS = 200
_MESSAGE_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class FailureContext:
    """What the record of a failure says beside its result.

    Attributes:
        scenarios_from: Where the scenario was loaded from.
        minimal: The shortest schedule known to break a promise.
        environment: Where it ran.
        masking: What is not to be given away.
        control: What was durable when the control leg was quiet, if it was kept.
        compared: Whether to read the crash images and say how they differ.
    """

    scenarios_from: str
    minimal: MinimalRow
    environment: EnvironmentRow
    masking: Masking
    control: Path
    compared: bool = True


def failure_record(
    result: ExperimentResult, outcome: ScenarioOutcome, folder: Path, about: FailureContext
) -> FailureRecord:
    """Put the record together.

    Args:
        result: A broken experiment.
        outcome: Its scenario with all experiments.
        folder: Where its crash images and outputs were kept.
        about: The rest.
    """
    scenario = outcome.scenario
    workload = scenario.drawn_workload(result.seed)
    images = [FailureFolder(folder).end_image(life.number) for life in result.incarnations]
    observed = [observe(image / "world") for image in images]
    rows, left_out = history(result, observed)
    states, recovered = _states(result, images) if about.compared else ([], None)
    record: FailureRecord = {
        "schema": FAILURE_SCHEMA,
        "fingerprint": result.fingerprint,
        "scenarios_from": about.scenarios_from,
        "scenario": result.scenario,
        "schedule": str(result.schedule),
        "seed": result.seed,
        "pin": str(scenario.pin),
        "violations": [
            {"oracle": v.oracle, "message": v.message[:_MESSAGE_CHARS]}
            for v in result.violations[:_VIOLATIONS]
        ],
        "promises": [
            {"name": o.name, "promise": o.promise, "remedy": getattr(o, "remedy", "")}
            for o in scenario.judges
        ],
        "strikes": [strike_row(fired, result, outcome) for fired in result.fired],
        "incarnations": _incarnations(result, FailureFolder(folder)),
        "history": rows,
        "history_left_out": left_out,
        "workload": _workload(workload),
        "commands": commands(workload, observed),
        "effects": effects(observed[-1]) if observed else [],
        "decisions": _decisions(outcome, images),
        "states": states,
        "survivors": list(result.survivors),
        "control": control_row(result, outcome.control, about.control, recovered),
        "minimal": about.minimal,
        "environment": about.environment,
    }
    masked = cast("FailureRecord", about.masking.everything(cast("Json", record)))
    # What it takes to run it again is kept to the letter.
    for kept in ("scenario", "schedule", "seed", "fingerprint"):
        masked[kept] = record[kept]
    masked["minimal"]["schedule"] = record["minimal"]["schedule"]
    return masked


def _incarnations(result: ExperimentResult, folder: FailureFolder) -> list[IncarnationRow]:
    return [
        {
            "number": life.number,
            "death": life.death,
            "output": _end_of(folder.output(life.number)),
        }
        for life in result.incarnations
    ]


def _end_of(path: Path) -> str:
    if path.is_symlink() or not path.is_file():  # the worker has put something in its place
        return ""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _OUTPUT_BYTES))
            return file.read().decode("utf-8", "backslashreplace")
    except OSError:
        return ""


def _workload(workload: Workload) -> WorkloadRow:
    return {
        "twice": sorted(workload.twice),
        "lost": [f"reply {lost.nth} to {lost.exchange} of {lost.key}" for lost in workload.lost],
    }


def _decisions(outcome: ScenarioOutcome, images: list[Path]) -> list[RecordedDecision]:
    """Read the decisions with the reader of books that an oracle of the scenario has."""
    readers = [
        reader
        for oracle in outcome.scenario.judges
        if callable(reader := getattr(oracle, "read_books", None))
    ]
    if not readers:
        return []
    found: list[RecordedDecision] = []
    known = 0
    for number, image in enumerate(images, start=1):
        with suppress(Exception):  # a reader that fails is the scenario's; there is nothing to show
            made = cast("WorkerState", readers[0](image / "worker")).decisions
            found += [
                {
                    "incarnation": number,
                    "attempt_id": row.attempt_id,
                    "decision": row.decision,
                    "reason": row.reason,
                }
                for row in made[known:]
            ]
            known = len(made)
    return found


def _states(result: ExperimentResult, images: list[Path]) -> tuple[list[StateRow], Held | None]:
    """Describe the images, and return what the first one after the strikes holds."""
    titles = _titles(result)
    struck = {fired.incarnation for fired in result.fired}
    rows: list[StateRow] = []
    before = Held()
    recovered = None
    for life, image in list(zip(result.incarnations, images, strict=True))[:_STATES]:
        if not image.is_dir():
            continue
        now = read_held(image)
        rows.append(state(life.number, titles[life.number], before, now))
        before = now
        if recovered is None and life.number not in struck:
            recovered = now
    return rows, recovered


def _titles(result: ExperimentResult) -> dict[int, str]:
    struck: dict[int, list[str]] = {}
    for fired in result.fired:
        struck.setdefault(fired.incarnation, []).append(str(fired.moment))
    titles: dict[int, str] = {}
    healing = 0
    for life in result.incarnations:
        if life.number in struck:
            titles[life.number] = f"at the strike, {', '.join(struck[life.number])}"
            continue
        healing += 1
        what = "after recovery" if struck or healing > 1 else "at rest"
        titles[life.number] = what if healing == 1 else "at the end, after a fresh command"
    if healing and STARTS_AGAIN.name in result.oracles:
        titles[result.incarnations[-1].number] = "where it did not start again"
    return titles
