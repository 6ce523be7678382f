"""The record of a failure, put together from its result and from what it left on disk."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from harness.failure_record import FAILURE_SCHEMA
from harness.recording.sightings import commands, effects, read_seen
from harness.recording.sources import excerpt, from_here, locate
from harness.recording.states import Held, read_held, state
from harness.recording.story import history

if TYPE_CHECKING:
    from pathlib import Path

    from harness.failure_record import (
        ControlRow,
        DecisionRow,
        EnvironmentRow,
        FailureRecord,
        LifeRow,
        MinimalRow,
        StateRow,
        StrikeRow,
        WorkloadRow,
    )
    from harness.incarnation import Hit
    from harness.jsontext import Json
    from harness.oracles.books import Books
    from harness.outcome import Outcome
    from harness.recording.masking import Masking
    from harness.result import ExperimentResult, Fired
    from harness.workload import Workload

_OUTPUT_BYTES = 4_000
_STATES = 12
_VIOLATIONS = 200
_MESSAGE_CHARS = 2_000
_PASSED = 6


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the record of a failure says beside its result.

    Attributes:
        scenarios_from: Where the scenario was loaded from.
        minimal: The shortest schedule known to break a promise.
        environment: Where it ran.
        masking: What is not to be given away.
        compared: Whether to read the crash images and say how they differ.
    """

    scenarios_from: str
    minimal: MinimalRow
    environment: EnvironmentRow
    masking: Masking
    compared: bool = True


def failure_record(
    result: ExperimentResult, outcome: Outcome, folder: Path, about: Circumstances
) -> FailureRecord:
    """Put the record together.

    Args:
        result: A broken experiment.
        outcome: Its scenario with all experiments.
        folder: Where its crash images and outputs were kept.
        about: The rest.
    """
    scenario = outcome.scenario
    workload = scenario.workload(result.seed)
    images = [folder / "images" / f"{life.number}-end" for life in result.lives]
    seen = [read_seen(image / "world") for image in images]
    rows, left_out = history(result, seen)
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
        "promises": [{"name": o.name, "promise": o.promise} for o in scenario.oracles],
        "strikes": [_strike(fired, result, outcome) for fired in result.fired],
        "lives": _lives(result, folder / "control"),
        "history": rows,
        "history_left_out": left_out,
        "workload": _workload(workload),
        "commands": commands(workload, seen),
        "effects": effects(seen[-1]) if seen else [],
        "decisions": _decisions(outcome, images),
        "states": _states(result, images) if about.compared else [],
        "survivors": list(result.survivors),
        "control": _control(result, outcome.control),
        "minimal": about.minimal,
        "environment": about.environment,
    }
    masked = cast("FailureRecord", about.masking.everything(cast("Json", record)))
    # What it takes to run it again is kept to the letter.
    for kept in ("scenario", "schedule", "seed", "fingerprint"):
        masked[kept] = record[kept]
    masked["minimal"]["schedule"] = record["minimal"]["schedule"]
    return masked


def _strike(fired: Fired, result: ExperimentResult, outcome: Outcome) -> StrikeRow:
    label = fired.moment.label
    row: StrikeRow = {
        "moment": str(fired.moment),
        "incarnation": fired.incarnation,
        "file": "",
        "line": 0,
        "lines": [],
        "passed": _passed(fired, result),
        "next_in_control": _next(fired, outcome.control),
    }
    if label in outcome.catalogue:
        point = outcome.catalogue[label]
        path = locate(point.file)
        row["file"] = from_here(path) if path else point.file
        row["line"] = point.line
        row["lines"] = excerpt(path, point.line) if path else []
    return row


def _passed(fired: Fired, result: ExperimentResult) -> list[str]:
    for life in result.lives:
        if life.number == fired.incarnation:
            before = itertools.takewhile(lambda hit: not hit.is_at(fired.moment), life.hits)
            return [_named(hit) for hit in before][-_PASSED:]
    return []


def _next(fired: Fired, control: ExperimentResult) -> str:
    for life in control.lives:
        for hit, after in itertools.pairwise(life.hits):
            if hit.is_at(fired.moment):
                return _named(after)
    return ""


def _named(hit: Hit) -> str:
    """Name a hit with its first context, as a schedule would."""
    for key, value in hit.context.items():
        return f"{hit.label}[{key}={value}]"
    return hit.label


def _lives(result: ExperimentResult, control_dir: Path) -> list[LifeRow]:
    return [
        {
            "number": life.number,
            "death": life.death,
            "output": _end_of(control_dir / f"{life.number}.output.txt"),
        }
        for life in result.lives
    ]


def _end_of(path: Path) -> str:
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


def _decisions(outcome: Outcome, images: list[Path]) -> list[DecisionRow]:
    """Read the decisions with the reader of books that an oracle of the scenario has."""
    readers = [
        reader
        for oracle in outcome.scenario.oracles
        if callable(reader := getattr(oracle, "read_books", None))
    ]
    if not readers:
        return []
    found: list[DecisionRow] = []
    known = 0
    for number, image in enumerate(images, start=1):
        with suppress(Exception):  # a reader that fails is the scenario's; there is nothing to show
            made = cast("Books", readers[0](image / "worker")).decisions
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


def _states(result: ExperimentResult, images: list[Path]) -> list[StateRow]:
    titles = _titles(result)
    rows: list[StateRow] = []
    before = Held()
    for life, image in list(zip(result.lives, images, strict=True))[:_STATES]:
        if not image.is_dir():
            continue
        now = read_held(image)
        rows.append(state(life.number, titles[life.number], before, now))
        before = now
    return rows


def _titles(result: ExperimentResult) -> dict[int, str]:
    struck: dict[int, list[str]] = {}
    for fired in result.fired:
        struck.setdefault(fired.incarnation, []).append(str(fired.moment))
    titles: dict[int, str] = {}
    healing = 0
    for life in result.lives:
        if life.number in struck:
            titles[life.number] = f"at the strike, {', '.join(struck[life.number])}"
            continue
        healing += 1
        what = "after recovery" if struck or healing > 1 else "at rest"
        titles[life.number] = what if healing == 1 else "at the end, after a fresh command"
    return titles


def _control(result: ExperimentResult, control: ExperimentResult) -> ControlRow:
    # Up to the first rest: what follows, the second restart, may have been spared.
    struck = len({fired.incarnation for fired in result.fired})
    here = Counter(hit.label for life in result.lives[: struck + 1] for hit in life.hits)
    there = Counter(hit.label for life in control.lives[:1] for hit in life.hits)
    return {
        "verdict": control.verdict.value,
        "note": control.note[:_MESSAGE_CHARS],
        "points": [
            {"label": label, "here": here[label], "control": there[label]}
            for label in dict.fromkeys([*there, *here])
        ],
    }
