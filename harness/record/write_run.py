"""The record: what is written down of a run, as data that anything can read."""

from __future__ import annotations

import errno
import json
import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from harness.images.deletion import remove_tree
from harness.images.run_folder import AllRuns, RunFolder
from harness.model.errors import HarnessError, UsageError
from harness.model.regular_file import shown_path
from harness.model.result import Verdict
from harness.record.interruption import exit_code_of_run
from harness.record.masking import Masking
from harness.record.minimal import unshrunk_row
from harness.record.open_failures import keep_open
from harness.record.pins import NO_PINS
from harness.record.run_schema import SCHEMA, read_run
from harness.record.shortened import shortened
from harness.record.write_failure import FailureContext, failure_record

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from harness.model.canonical_json import Json
    from harness.model.result import ExperimentResult
    from harness.record.failure_schema import EnvironmentRow, MinimalRow
    from harness.record.interruption import Interruption
    from harness.record.outcome import ScenarioOutcome
    from harness.record.pins import KnownFailure, Pins
    from harness.record.run_schema import (
        ExperimentRow,
        MomentRow,
        PinRow,
        RunRecord,
        ScenarioRow,
        TimingRow,
    )
    from harness.scenario import Scenario

_COMPARED = 200
"""Of how many failures of a scenario the crash images are read, which is most of the cost."""
_COMPARED_OF_KNOWN_BAD = 3
"""The same, of a scenario that is pinned broken: its failures are expected."""
_SLOWEST = 10
_VIOLATIONS = 50
_TEXT_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class RunMetadata:
    """What a run was asked, and how long it took.

    Attributes:
        tier: The tier, or empty when one schedule was run.
        seed: The seed.
        lanes: How many experiments ran at once.
        started: When it began.
        seconds: How long it took, in seconds.
        scenarios_from: Where the scenarios were loaded from, as the user named it.
        environment: Where it ran.
        minimal: By fingerprint: the shortest schedule of a failure, when one was looked for.
        pins: Failures that are known.
        interruption: Why the run ended before it was through, if it did.
    """

    tier: str
    seed: int
    lanes: int
    started: datetime
    seconds: float
    scenarios_from: str
    environment: EnvironmentRow
    minimal: Mapping[str, MinimalRow] = field(default_factory=dict)
    pins: Pins = NO_PINS
    interruption: Interruption | None = None


_ANOTHER = "give another directory (--out; with pytest --crash-out)"


def new_run_dir(out: Path, started: datetime) -> Path:
    """Make the directory of a run, named by its time in UTC.

    Args:
        out: Directory of all runs; made when it is missing.
        started: When the run began.

    Raises:
        UsageError: No directory or no link can be made there.
        HarnessError: The disk is full.
    """
    name = started.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _no_folder(out, error) from None
    latest = AllRuns(out).latest
    if latest.exists() and not latest.is_symlink():
        raise UsageError(
            f"{shown_path(latest)} is not a link, and the link to the latest run is to stand "
            f"there; move it away, or {_ANOTHER}"
        )
    for attempt in range(1, 1000):
        path = out / (name if attempt == 1 else f"{name}-{attempt}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise _no_folder(out, error) from None
        _require_links(path)
        return path
    raise FileExistsError(f"{out / name}: a thousand runs in one second")


def _no_folder(out: Path, error: OSError) -> HarnessError:
    said = f"no folder for the run can be made in {shown_path(out)}: {error.strerror}"
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return HarnessError(said)
    return UsageError(f"{said}; {_ANOTHER}")


def _require_links(path: Path) -> None:
    """See before anything runs that a directory of runs takes links.

    Raises:
        UsageError: It does not.
    """
    link = _new_link(path)
    try:
        link.symlink_to(path.name)
    except OSError as error:
        path.rmdir()
        raise UsageError(
            f"no symbolic link can be made in {shown_path(path.parent)}: {error.strerror}; the "
            f"latest run and the open failures are links: {_ANOTHER}"
        ) from None
    link.unlink()


def _new_link(run: Path) -> Path:
    """Return where the link to a run is made before it takes the place of the one before."""
    return run.parent / f".latest.{os.getpid()}"


def write_record(
    directory: Path,
    outcomes: tuple[ScenarioOutcome, ...],
    facts: RunMetadata,
    kept: frozenset[str] | None = None,
) -> RunRecord:
    """Write ``results.json`` and the failures, and point ``latest`` at the run.

    Args:
        directory: The run's directory.
        outcomes: What came out.
        facts: What was asked.
        kept: For a run that can be gone on with: fingerprints of the failures in its journal. Their
            folders stay, and what control legs left, which it takes to record more failures.

    Returns:
        What was written to ``results.json``.
    """
    masking = Masking.of_this_machine()
    folder = RunFolder(directory)
    latest = AllRuns(directory.parent).latest
    record = as_json(outcomes, facts, masking, _previous(latest, directory.name))
    for outcome in outcomes:
        broken = [result for result in outcome.results if result.verdict is Verdict.BROKEN]
        most = _COMPARED if outcome.scenario.pin.outcome == "holds" else _COMPARED_OF_KNOWN_BAD
        for number, result in enumerate(broken):
            _write_failure(folder, result, outcome, facts, masking, compared=number < most)
    write_json(folder.record, cast("Json", record))
    _forget_unrecorded(folder, kept or frozenset())
    if kept is None:
        folder.forget_control_legs()
    keep_open(directory, outcomes)
    fresh = _new_link(directory)
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(directory.name)
    fresh.replace(latest)
    return record


def _previous(latest: Path, run: str) -> str:
    """Return the name of the last run that was through, which one that is not hides from nobody.

    Args:
        latest: The link to the latest run.
        run: Name of the run that is recorded; it may be the latest, and is gone on with.
    """
    if not latest.is_symlink():
        return ""
    try:
        record = read_run(latest)
    except UsageError:  # of another version, or gone: whoever compares will see
        return latest.readlink().name
    before = latest.readlink().name
    return record["timing"]["previous"] if record["interrupted"] or before == run else before


def _forget_unrecorded(run: RunFolder, kept: frozenset[str]) -> None:
    """Delete what experiments left whose result did not arrive before the run was interrupted."""
    for folder in run.failures():
        if folder.path.name not in kept and not folder.record.exists():
            with suppress(OSError):
                remove_tree(folder.path)


def _write_failure(
    run: RunFolder,
    result: ExperimentResult,
    outcome: ScenarioOutcome,
    facts: RunMetadata,
    masking: Masking,
    *,
    compared: bool,
) -> None:
    folder = run.failure(result.fingerprint)
    folder.path.mkdir(parents=True, exist_ok=True)
    minimal = facts.minimal.get(result.fingerprint) or unshrunk_row(result)
    control = run.control_image(result.scenario)
    about = FailureContext(
        facts.scenarios_from, minimal, facts.environment, masking, control, compared
    )
    record = failure_record(result, outcome, folder.path, about)
    write_json(folder.record, cast("Json", record))


def as_json(
    outcomes: tuple[ScenarioOutcome, ...], facts: RunMetadata, masking: Masking, previous: str = ""
) -> RunRecord:
    """Return the record; everything that differs between two equal runs is in ``timing``.

    Args:
        outcomes: What came out.
        facts: What was asked.
        masking: What is not to be given away.
        previous: Name of the run before, if there was one.
    """
    return {
        "schema": SCHEMA,
        "tier": facts.tier,
        "seed": facts.seed,
        "interrupted": masking.text(facts.interruption.why) if facts.interruption else "",
        "scenarios": [_scenario(outcome, masking) for outcome in outcomes],
        "experiments": [
            _experiment(result, outcome.scenario, facts.pins, masking)
            for outcome in outcomes
            for result in outcome.results
        ],
        "moments": [row for outcome in outcomes for row in _moments(outcome)],
        "pins": [_pin(pin, outcomes) for pin in facts.pins.known],
        "totals": totals(outcomes, facts.interruption),
        "timing": _timing(outcomes, facts, previous),
    }


def _timing(outcomes: tuple[ScenarioOutcome, ...], facts: RunMetadata, previous: str) -> TimingRow:
    results = [result for outcome in outcomes for result in outcome.results]
    slowest = sorted(results, key=lambda result: -result.seconds)[:_SLOWEST]
    return {
        "started": facts.started.astimezone(UTC).isoformat(timespec="seconds"),
        "seconds": round(facts.seconds, 3),
        "experiments_per_s": round(len(results) / facts.seconds, 2) if facts.seconds else 0,
        "lanes": facts.lanes,
        "previous": previous,
        "slowest": [{"id": r.experiment_id, "seconds": round(r.seconds, 3)} for r in slowest],
        "each": [round(result.seconds, 3) for result in results],
    }


def totals(
    outcomes: tuple[ScenarioOutcome, ...], interruption: Interruption | None = None
) -> dict[str, int]:
    """Return the counts of a run.

    Args:
        outcomes: What came out.
        interruption: Why the run ended before it was through, if it did.
    """
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
        "exit_code": int(exit_code_of_run(outcomes, interruption)),
    }


def _scenario(outcome: ScenarioOutcome, masking: Masking) -> ScenarioRow:
    return {
        "name": outcome.scenario.name,
        "pin": str(outcome.scenario.pin),
        "finished": outcome.finished,
        "as_pinned": not outcome.exit_code,
        "mismatch": masking.text(outcome.mismatch),
        "inconclusive": [
            masking.text(shortened(text, _TEXT_CHARS)) for text in outcome.inconclusive()
        ],
        "bounds": [masking.text(text) for text in outcome.bounds],
        "fork_sample": outcome.sample.row,
        "outside": [masking.text(left[:_TEXT_CHARS]) for left in outcome.outside],
        "oracles": [
            {"name": oracle.name, "promise": oracle.promise} for oracle in outcome.scenario.judges
        ],
    }


def _moments(outcome: ScenarioOutcome) -> list[MomentRow]:
    return [
        {
            "scenario": outcome.scenario.name,
            "moment": str(tally.moment),
            "source": tally.source,
            "reached": tally.reached,
            "struck": tally.struck,
            "struck_in_recovery": tally.struck_in_recovery,
            "survived": tally.survived,
        }
        for tally in outcome.moments
    ]


def _experiment(
    result: ExperimentResult, scenario: Scenario, pins: Pins, masking: Masking
) -> ExperimentRow:
    violations = result.violations[:_VIOLATIONS]
    note = result.note
    if len(result.violations) > _VIOLATIONS:
        note += f"\n{len(result.violations) - _VIOLATIONS} more violations were left out"
    return {
        "id": result.experiment_id,
        "scenario": result.scenario,
        "schedule": str(result.schedule),
        "seed": result.seed,
        "verdict": result.verdict.value,
        "pin": str(scenario.pin),
        "known": pins.know(result),
        "violations": [
            {"oracle": v.oracle, "message": masking.text(v.message[:_TEXT_CHARS])}
            for v in violations
        ],
        "fired": [
            {"moment": str(fired.moment), "incarnation": fired.incarnation}
            for fired in result.fired
        ],
        "fingerprint": result.fingerprint,
        "note": masking.text(shortened(note, 2 * _TEXT_CHARS)),
    }


def _pin(pin: KnownFailure, outcomes: tuple[ScenarioOutcome, ...]) -> PinRow:
    results = [result for outcome in outcomes for result in outcome.results]
    broken = any(pin.knows(result) for result in results)
    fixed = any(pin in outcome.fixed_pins for outcome in outcomes)
    return {
        "scenario": pin.scenario,
        "schedule": pin.schedule,
        "fingerprint": pin.fingerprint,
        "reason": pin.reason,
        "date": pin.date.isoformat(),
        "state": "broken" if broken else "fixed" if fixed else "not_run",
    }


def write_json(path: Path, value: Json) -> None:
    """Write a JSON file, whole or not at all.

    Args:
        path: Where.
        value: What.
    """
    fresh = path.with_name(path.name + ".new")
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    # A lone surrogate, which UTF-8 cannot hold, becomes the JSON escape that means the same.
    fresh.write_text(text, encoding="utf-8", errors="backslashreplace")
    fresh.replace(path)
