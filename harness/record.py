"""The record: what is written down of a run, as data that anything can read."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from harness.outcome import exit_code
from harness.result import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from harness.jsontext import Json, JsonObject
    from harness.outcome import Outcome
    from harness.result import ExperimentResult, LifeTrace
    from harness.scenario import Scenario

SCHEMA = "crash-harness/results/1"
FAILURE_SCHEMA = "crash-harness/failure/1"
RESULTS = "results.json"
FAILURE = "failure.json"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a run was asked, and how long it took.

    Attributes:
        tier: The tier, or empty when one schedule was run.
        seed: The seed.
        lanes: How many experiments ran at once.
        started: When it began.
        seconds: How long it took, in seconds.
        scenarios_from: Where the scenarios were loaded from, as the user named it.
    """

    tier: str
    seed: int
    lanes: int
    started: datetime
    seconds: float
    scenarios_from: str


def new_run_dir(out: Path, started: datetime) -> Path:
    """Make the directory of a run, named by its time in UTC.

    Args:
        out: Directory of all runs; made when it is missing.
        started: When the run began.
    """
    name = started.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    for attempt in range(1, 1000):
        path = out / (name if attempt == 1 else f"{name}-{attempt}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        return path
    raise FileExistsError(f"{out / name}: a thousand runs in one second")


def write_record(directory: Path, outcomes: tuple[Outcome, ...], facts: RunFacts) -> JsonObject:
    """Write ``results.json`` and the failures, and point ``latest`` at the run.

    Args:
        directory: The run's directory.
        outcomes: What came out.
        facts: What was asked.

    Returns:
        What was written to ``results.json``.
    """
    record = as_json(outcomes, facts)
    for outcome in outcomes:
        for result in outcome.results:
            if result.verdict is Verdict.BROKEN:
                folder = directory / "failures" / result.fingerprint
                folder.mkdir(parents=True, exist_ok=True)
                _write(folder / FAILURE, _failure(result, facts))
    _write(directory / RESULTS, record)
    latest = directory.parent / "latest"
    fresh = directory.parent / f".latest.{os.getpid()}"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(directory.name)
    fresh.replace(latest)
    return record


def as_json(outcomes: tuple[Outcome, ...], facts: RunFacts) -> JsonObject:
    """Return the record; everything that differs between two equal runs is in ``timing``."""
    count = sum(len(outcome.results) for outcome in outcomes)
    return {
        "schema": SCHEMA,
        "tier": facts.tier,
        "seed": facts.seed,
        "scenarios": [_scenario(outcome) for outcome in outcomes],
        "experiments": [
            _experiment(result, outcome.scenario)
            for outcome in outcomes
            for result in outcome.results
        ],
        "moments": [
            {
                "scenario": outcome.scenario.name,
                "moment": str(tally.moment),
                "source": tally.source,
                "reached": tally.reached,
                "struck": tally.struck,
                "struck_in_recovery": tally.struck_in_recovery,
                "survived": tally.survived,
            }
            for outcome in outcomes
            for tally in outcome.moments
        ],
        "totals": totals(outcomes),
        "timing": {
            "started": facts.started.astimezone(UTC).isoformat(timespec="seconds"),
            "seconds": round(facts.seconds, 3),
            "experiments_per_s": round(count / facts.seconds, 2) if facts.seconds else 0,
            "lanes": facts.lanes,
        },
    }


def totals(outcomes: tuple[Outcome, ...]) -> JsonObject:
    """Return the counts of a run."""
    verdicts = Counter(r.verdict for outcome in outcomes for r in outcome.results)
    moments = [tally for outcome in outcomes for tally in outcome.moments]
    return {
        "scenarios": len(outcomes),
        "as_pinned": sum(not outcome.exit_code for outcome in outcomes),
        "experiments": verdicts.total(),
        **{verdict.value: verdicts[verdict] for verdict in Verdict},
        "moments_found": len(moments),
        "moments_struck": sum(tally.struck > 0 for tally in moments),
        "moments_survived": sum(tally.survived for tally in moments),
        "exit_code": int(exit_code(outcomes)),
    }


def _scenario(outcome: Outcome) -> JsonObject:
    return {
        "name": outcome.scenario.name,
        "pin": str(outcome.scenario.pin),
        "as_pinned": not outcome.exit_code,
        "mismatch": outcome.mismatch,
        "inconclusive": list(outcome.inconclusive()),
        "bounds": list(outcome.bounds),
        "oracles": [
            {"name": oracle.name, "promise": oracle.promise} for oracle in outcome.scenario.oracles
        ],
    }


def _experiment(result: ExperimentResult, scenario: Scenario) -> JsonObject:
    return {
        "id": result.experiment_id,
        "scenario": result.scenario,
        "schedule": str(result.schedule),
        "seed": result.seed,
        "verdict": result.verdict.value,
        "pin": str(scenario.pin),
        "violations": [{"oracle": v.oracle, "message": v.message} for v in result.violations],
        "fired": [
            {"moment": str(fired.moment), "incarnation": fired.incarnation}
            for fired in result.fired
        ],
        "fingerprint": result.fingerprint,
        "note": result.note,
    }


def _failure(result: ExperimentResult, facts: RunFacts) -> JsonObject:
    return {
        "schema": FAILURE_SCHEMA,
        "fingerprint": result.fingerprint,
        "scenarios_from": facts.scenarios_from,
        "scenario": result.scenario,
        "schedule": str(result.schedule),
        "seed": result.seed,
        "violations": [{"oracle": v.oracle, "message": v.message} for v in result.violations],
        "history": [entry for life in result.lives for entry in _history(life)],
    }


def _history(life: LifeTrace) -> Iterable[Json]:
    for hit in life.hits:
        yield {
            "incarnation": life.number,
            "point": hit.label,
            "context": hit.context,
            "hits": hit.hits,
        }
    yield {"incarnation": life.number, "ended": life.death}


def _write(path: Path, value: JsonObject) -> None:
    fresh = path.with_name(path.name + ".new")
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    # A lone surrogate, which UTF-8 cannot hold, becomes the JSON escape that means the same.
    fresh.write_text(text, encoding="utf-8", errors="backslashreplace")
    fresh.replace(path)
