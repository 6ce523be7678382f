"""The record of a run, and its directory."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from harness_doubles import broken, hit, hits, result, scenario

from harness.model.result import Verdict
from harness.model.schedule import parse
from harness.model.starts_again import STARTS_AGAIN
from harness.moments.catalogue import Catalogue, DeclaredPoint
from harness.record.environment import NOWHERE
from harness.record.failure_schema import FAILURE_SCHEMA, read_failure_record
from harness.record.masking import Masking
from harness.record.outcome import ScenarioOutcome
from harness.record.run_schema import SCHEMA, RunRecord
from harness.record.write_run import (
    RunMetadata,
    as_json,
    new_run_dir,
    totals,
    write_record,
)
from harness.replay.reproduce import read_failure

if TYPE_CHECKING:
    from harness.model.result import ExperimentResult

STARTED = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)
FACTS = RunMetadata("smoke", 7, 2, STARTED, 3.14159, "my_scenarios.py", NOWHERE)
UNMASKED = Masking({}, "", "")
AT_B = parse("a.b.before[command=c2]=kill")
CATALOGUE = Catalogue([DeclaredPoint("a.b.before", "p/a.py", 1)])


def outcomes(*others: ExperimentResult) -> tuple[ScenarioOutcome, ...]:
    """Return a run of one scenario."""
    control = result(incarnations=[hits("a.b.before")])
    return (ScenarioOutcome(scenario(), CATALOGUE, (control, *others), whole=True),)


def failed() -> ExperimentResult:
    """Return an experiment that broke, with what its incarnations did."""
    incarnations = result(
        AT_B, [[hit("a.b.before", 2, command="c2")], hits("a.b.before")]
    ).incarnations
    return replace(broken(AT_B, "first"), incarnations=incarnations, seed=7)


def recorded(facts: RunMetadata, *others: ExperimentResult) -> RunRecord:
    """Return the record of a run, without anything to mask."""
    return as_json(outcomes(*others), facts, UNMASKED)


def read(path: Path) -> dict[str, object]:
    """Read a JSON file."""
    return cast("dict[str, object]", json.loads(path.read_text(encoding="utf-8")))


def test_two_equal_runs_differ_in_timing_alone() -> None:
    """Two runs with one seed give the same record apart from ``timing``."""
    later = replace(FACTS, lanes=8, started=STARTED + timedelta(days=1), seconds=99.0)
    one, other = recorded(FACTS, failed()), recorded(later, failed())
    assert one["timing"] != other["timing"]
    assert {**one, "timing": None} == {**other, "timing": None}
    assert json.dumps({**one, "timing": None}) == json.dumps({**other, "timing": None})


def test_where_scenarios_were_loaded_from_is_no_part_of_the_record() -> None:
    """The same run from another directory gives the same record."""
    elsewhere = replace(FACTS, scenarios_from="/elsewhere/my_scenarios.py")
    assert recorded(FACTS) == recorded(elsewhere)


def test_the_record_says_what_was_asked_and_what_came_out() -> None:
    """README, *record*: scenarios, experiments, moments, totals and timing."""
    record = recorded(FACTS, failed())
    assert (record["schema"], record["tier"], record["seed"]) == (SCHEMA, "smoke", 7)
    assert record["scenarios"] == [
        {
            "name": "tried",
            "pin": "holds",
            "finished": True,
            "as_pinned": False,
            "mismatch": "1 experiment broke a promise",
            "inconclusive": [],
            "bounds": [],
            "fork_sample": {"experiments": [], "why_not": "this run did not come to it"},
            "outside": [],
            "oracles": [
                {"name": "starts-again", "promise": STARTS_AGAIN.promise},
                {"name": "first", "promise": "what was promised"},
            ],
        }
    ]
    experiments = record["experiments"]
    assert [each["schedule"] for each in experiments] == ["", "a.b.before[command=c2]#1=kill"]
    assert experiments[1] == {
        "id": "tried[a.b.before[command=c2]#1=kill]",
        "scenario": "tried",
        "schedule": "a.b.before[command=c2]#1=kill",
        "seed": 7,
        "verdict": "broken",
        "pin": "holds",
        "known": False,
        "violations": [{"oracle": "first", "message": "first found it"}],
        "fired": [{"moment": "a.b.before[command=c2]#1", "incarnation": 1}],
        "fingerprint": failed().fingerprint,
        "note": "",
    }
    assert record["moments"] == [
        {
            "scenario": "tried",
            "moment": "a.b.before[command=c2]#1",
            "source": "p/a.py:1",
            "reached": True,
            "struck": 1,
            "struck_in_recovery": 0,
            "survived": False,
        }
    ]
    assert record["timing"] == {
        "started": "2031-02-03T04:05:06+00:00",
        "seconds": 3.142,
        "experiments_per_s": 0.64,
        "lanes": 2,
        "previous": "",
        "slowest": [
            {"id": "tried[control]", "seconds": 0.0},
            {"id": "tried[a.b.before[command=c2]#1=kill]", "seconds": 0.0},
        ],
        "each": [0.0, 0.0],
    }
    assert record["pins"] == []


def test_the_totals_add_up() -> None:
    """Every verdict has its count, and they add up to the experiments."""
    every = [result(AT_B, verdict=verdict) for verdict in Verdict if verdict is not Verdict.HELD]
    counts = totals(outcomes(*every))
    assert counts == {
        "scenarios": 1,
        "as_pinned": 0,
        "experiments": 7,
        "held": 1,
        "broken": 1,
        "not_fired": 1,
        "wrong_death": 1,
        "flaky": 1,
        "hung": 1,
        "unknown": 1,
        "moments_found": 1,
        "moments_struck": 1,
        "moments_survived": 0,
        "exit_code": 1,
    }


def test_a_run_that_took_no_time_has_a_record() -> None:
    """A clock that does not move is no reason to fail."""
    record = recorded(replace(FACTS, seconds=0.0))
    assert record["timing"]["experiments_per_s"] == 0


def test_the_record_is_written_as_it_is_returned(tmp_path: Path) -> None:
    """The record is JSON in UTF-8, and nothing half-written is left."""
    run = new_run_dir(tmp_path / "runs", STARTED)
    noted = result(AT_B, verdict=Verdict.HUNG, note="größer ✓", fired=0)
    record = write_record(run, outcomes(noted), FACTS)
    assert read(run / "results.json") == json.loads(json.dumps(record))
    assert "größer ✓" in (run / "results.json").read_text(encoding="utf-8")
    assert [path.name for path in run.iterdir()] == ["results.json"]


@pytest.mark.requirement("HAR-10")
def test_each_failure_is_written_to_a_folder_of_its_own(tmp_path: Path) -> None:
    """A failure's folder says what was done and found, under its fingerprint."""
    run = new_run_dir(tmp_path, STARTED)
    kept = run / "failures" / failed().fingerprint
    kept.mkdir(parents=True)
    (kept / "image").write_text("what the experiment left")
    other = broken(parse("a.b.before=kill"), "first")
    write_record(run, outcomes(failed(), result(AT_B), other), FACTS)
    assert {path.name for path in (run / "failures").iterdir()} == {
        failed().fingerprint,
        other.fingerprint,
    }
    record = read_failure_record(kept)
    asked = {
        "schema": FAILURE_SCHEMA,
        "fingerprint": failed().fingerprint,
        "scenarios_from": "my_scenarios.py",
        "scenario": "tried",
        "schedule": "a.b.before[command=c2]#1=kill",
        "seed": 7,
        "pin": "holds",
    }
    assert {**record, **asked} == record
    assert record["violations"] == [{"oracle": "first", "message": "first found it"}]
    assert record["promises"][1:] == [
        {"name": "first", "promise": "what was promised", "remedy": ""}
    ]
    assert record["environment"] == NOWHERE
    assert record["minimal"]["schedule"] == record["schedule"]
    assert [(strike["moment"], strike["incarnation"]) for strike in record["strikes"]] == [
        ("a.b.before[command=c2]#1", 1)
    ]
    assert [
        (row["order"], row["incarnation"], row["what"], row["text"], row["context"], row["hits"])
        for row in record["history"]
    ] == [
        (1, 1, "started", "started", {}, {}),
        (2, 1, "struck", "a.b.before", {"command": "c2"}, {"": 2, "command": 1}),
        (3, 1, "ended", "killed by SIGKILL", {}, {}),
        (4, 2, "started", "started", {}, {}),
        (5, 2, "point", "a.b.before", {}, {"": 1}),
        (6, 2, "ended", "killed by SIGKILL", {}, {}),
    ]
    assert record["history_left_out"] == 0
    assert read_failure_record(kept) == record
    assert (kept / "image").exists()


def test_a_failure_that_was_written_can_be_read(tmp_path: Path) -> None:
    """A recorded failure is one that can be run again."""
    run = new_run_dir(tmp_path, STARTED)
    write_record(run, outcomes(failed()), FACTS)
    failure = read_failure(run / "failures" / failed().fingerprint)
    assert (failure.scenario, failure.schedule, failure.seed) == ("tried", AT_B, 7)
    assert failure.fingerprint == failed().fingerprint
    assert failure.scenarios_from == "my_scenarios.py"


def test_latest_is_the_last_run(tmp_path: Path) -> None:
    """README, *record*: ``latest`` points at the newest run, relative to the folder of all."""
    for hour in range(2):
        run = new_run_dir(tmp_path, STARTED + timedelta(hours=hour))
        write_record(run, outcomes(), FACTS)
        assert (tmp_path / "latest").readlink() == Path(run.name)
    assert (tmp_path / "latest" / "results.json").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "20310203T040506Z",
        "20310203T050506Z",
        "latest",
    ]


def test_runs_of_one_second_have_directories_of_their_own(tmp_path: Path) -> None:
    """No run writes into the directory of another."""
    out = tmp_path / "not" / "there" / "yet"
    names = [new_run_dir(out, STARTED).name for _ in range(3)]
    assert names == ["20310203T040506Z", "20310203T040506Z-2", "20310203T040506Z-3"]


def test_a_run_is_named_by_its_time_in_utc(tmp_path: Path) -> None:
    """Wherever it runs, the name sorts by time."""
    there = STARTED.astimezone(timezone(timedelta(hours=-9)))
    assert new_run_dir(tmp_path, there).name == "20310203T040506Z"


def test_a_thousand_runs_in_one_second_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search for a free name is bounded."""

    def taken(_path: Path, **how: object) -> None:
        if not how:
            raise FileExistsError

    monkeypatch.setattr(Path, "mkdir", taken)
    with pytest.raises(FileExistsError, match="a thousand runs in one second"):
        new_run_dir(tmp_path, STARTED)


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.BROKEN])
def test_only_a_failure_has_a_fingerprint(verdict: Verdict) -> None:
    """Only what is broken is a failure."""
    assert result(AT_B, verdict=verdict).fingerprint == ""


def test_the_fingerprint_is_scenario_schedule_and_oracles() -> None:
    """ARCHITECTURE, *fingerprint*: neither the seed nor the order or number of facts is in it."""
    one = broken(AT_B, "first", "second")
    assert len(one.fingerprint) == 16
    assert int(one.fingerprint, 16)
    same = (replace(one, seed=9), broken(AT_B, "second", "first", "first"))
    assert {each.fingerprint for each in same} == {one.fingerprint}
    others = (
        replace(one, scenario="other"),
        broken(AT_B, "first"),
        broken(parse("a.b.before=kill"), "first", "second"),
    )
    assert len({one.fingerprint, *(each.fingerprint for each in others)}) == 4
