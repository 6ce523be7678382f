"""The folder of open failures: what closes one, and what is deleted then."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from harness_doubles import broken, result, scenario

from benchmarks.sample_records import failure_record
from harness.model.result import ExperimentResult, Verdict
from harness.model.schedule import parse
from harness.moments.catalogue import scan
from harness.record.open_failures import keep_open
from harness.record.outcome import ScenarioOutcome

if TYPE_CHECKING:
    from pathlib import Path

STRUCK = parse("order.charge.after=kill")
FOUND = broken(STRUCK, "no-effect-twice")


def run_that_found(out: Path, name: str, *found: ExperimentResult) -> None:
    """Make a run's folder with the records of its failures, and keep them open."""
    run = out / name
    run.mkdir(parents=True)
    for each in found:
        if each.fingerprint:
            folder = run / "failures" / each.fingerprint
            folder.mkdir(parents=True)
            record = failure_record()
            record["scenario"], record["seed"] = each.scenario, each.seed
            record["schedule"] = str(each.schedule)
            (folder / "failure.json").write_text(json.dumps(record), encoding="utf-8")
    keep_open(run, (ScenarioOutcome(scenario(), scan(()), found, whole=True),))


def links(out: Path) -> dict[str, str]:
    """Return where each open failure is."""
    return {each.name: str(each.readlink()) for each in (out / "failures").iterdir()}


def test_the_newest_record_of_a_failure_is_the_open_one(tmp_path: Path) -> None:
    """Docs, reports: `failures/<fingerprint>` is a link to the newest; older ones stay."""
    for name in ("one", "two"):
        run_that_found(tmp_path, name, FOUND)
    assert links(tmp_path) == {FOUND.fingerprint: f"../two/failures/{FOUND.fingerprint}"}
    assert (tmp_path / "one" / "failures" / FOUND.fingerprint).is_dir()


def test_a_failure_that_held_is_closed_with_its_evidence(tmp_path: Path) -> None:
    """Docs, reports: a run of the same scenario, schedule and seed that shows it gone."""
    run_that_found(tmp_path, "one", FOUND)
    run_that_found(tmp_path, "two", result(STRUCK))
    assert links(tmp_path) == {}
    assert not (tmp_path / "one" / "failures" / FOUND.fingerprint).exists()
    assert (tmp_path / "one").is_dir()


def test_the_same_experiment_that_breaks_otherwise_closes_the_old_failure(tmp_path: Path) -> None:
    """Docs, reports: another oracle is another failure; the first one is seen to be gone."""
    other = broken(STRUCK, "boxes-agree")
    run_that_found(tmp_path, "one", FOUND)
    run_that_found(tmp_path, "two", other)
    assert list(links(tmp_path)) == [other.fingerprint]


@pytest.mark.parametrize(
    "said",
    [
        result(STRUCK, verdict=Verdict.HUNG),
        result(STRUCK, verdict=Verdict.NOT_FIRED),
        result(STRUCK, verdict=Verdict.WRONG_DEATH),
        result(STRUCK, verdict=Verdict.UNKNOWN),
        result(STRUCK, seed=1),
        result(parse("order.charge.before=kill")),
        result(STRUCK, scenario="other"),
    ],
    ids=lambda said: f"{said.scenario}-{said.verdict}-{said.seed}",
)
def test_what_does_not_show_it_gone_leaves_it_open(tmp_path: Path, said: ExperimentResult) -> None:
    """Inconclusive is not fixed, and neither is another seed, schedule or scenario."""
    run_that_found(tmp_path, "one", FOUND)
    run_that_found(tmp_path, "two", said)
    assert list(links(tmp_path)) == [FOUND.fingerprint]
    assert (tmp_path / "failures" / FOUND.fingerprint / "failure.json").exists()


def test_nothing_is_deleted_outside_the_runs(tmp_path: Path) -> None:
    """A link is data; where it leads out of the folder of runs it alone is removed."""
    run_that_found(tmp_path / "elsewhere", "one", FOUND)
    outside = tmp_path / "elsewhere" / "one" / "failures" / FOUND.fingerprint
    home = tmp_path / "runs" / "failures"
    home.mkdir(parents=True)
    (home / FOUND.fingerprint).symlink_to(outside)
    run_that_found(tmp_path / "runs", "two", result(STRUCK))
    assert links(tmp_path / "runs") == {}
    assert (outside / "failure.json").exists()
