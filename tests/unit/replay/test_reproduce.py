"""A recorded failure: read, and run again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pytest
from harness_doubles import broken, result, scenario

from benchmarks.sample_records import failure_record
from harness.images.run_folder import FAILURE
from harness.model.errors import UnknownNameError, UsageError
from harness.model.result import Verdict
from harness.model.schedule import CONTROL, parse
from harness.record.failure_schema import FAILURE_SCHEMA
from harness.record.outcome import ExitCode
from harness.replay.reproduce import Failure, Reproduction, read_failure, run_again

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from harness.experiment.lane import Job
    from harness.explore.executor import Executor
    from harness.model.result import ExperimentResult
    from harness.scenario import Scenario

AT_B = parse("a.b.before=kill")
BROKEN = broken(AT_B, "first")
HELD = result(AT_B)
NEEDED: dict[str, object] = {
    "fingerprint": BROKEN.fingerprint,
    "scenarios_from": "scenarios",
    "scenario": "tried",
    "schedule": "a.b.before#1=kill",
    "seed": 3,
}
GOOD: dict[str, object] = {**failure_record(), **NEEDED}
FAILURE_READ = Failure(BROKEN.fingerprint, "scenarios", "tried", AT_B, 3)


def test_a_failure_is_read_from_its_folder_or_its_file(tmp_path: Path) -> None:
    """README, `repro PATH`: both are given by people."""
    (tmp_path / FAILURE).write_text(json.dumps(GOOD))
    assert read_failure(tmp_path) == read_failure(tmp_path / FAILURE) == FAILURE_READ


def test_the_control_leg_can_be_a_failure(tmp_path: Path) -> None:
    """A worker that is broken without a fault has an empty schedule."""
    (tmp_path / FAILURE).write_text(json.dumps({**GOOD, "schedule": ""}))
    assert read_failure(tmp_path).schedule == CONTROL


@pytest.mark.parametrize("name", ["", "missing", "missing.json"])
def test_there_is_no_failure(tmp_path: Path, name: str) -> None:
    """A wrong path is a usage error that shows it."""
    path = tmp_path / name
    file = path / FAILURE if path.is_dir() else path
    with pytest.raises(UsageError, match=f"no recorded failure at {file}: No such file"):
        read_failure(path)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"import os"])
def test_a_failure_that_is_no_json(tmp_path: Path, content: bytes) -> None:
    """A record is data in JSON; anything else is refused."""
    (tmp_path / FAILURE).write_bytes(content)
    with pytest.raises(UsageError, match=f"{tmp_path / FAILURE} is not JSON"):
        read_failure(tmp_path)


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ({**GOOD, "schema": "crash-harness/failure/0"}, "'crash-harness/failure/0'"),
        ({**GOOD, "schema": "crash-harness/results/1"}, "'crash-harness/results/1'"),
        ({**GOOD, "schema": ["x" * 9000]}, r"\['xxxxxxxxxxxx\.\.\.xxxxxxxxxxxxx'\]"),
        ({}, "None"),
    ],
)
def test_a_failure_of_another_version(tmp_path: Path, content: object, shown: str) -> None:
    """What this version does not know is refused, with what it does know."""
    (tmp_path / FAILURE).write_text(json.dumps(content))
    with pytest.raises(
        UsageError, match=f"has schema {shown}, and this version reads '{FAILURE_SCHEMA}"
    ):
        read_failure(tmp_path)


@pytest.mark.parametrize("field", [name for name in GOOD if name != "schema"])
@pytest.mark.parametrize("wrong", ["missing", None, 1.5, True])
def test_a_field_that_is_missing_or_of_another_kind(
    tmp_path: Path, field: str, wrong: object
) -> None:
    """Every field is checked before it is used."""
    content = {name: value for name, value in GOOD.items() if name != field}
    if wrong != "missing":
        content[field] = wrong
    (tmp_path / FAILURE).write_text(json.dumps(content))
    kind = {str: "str", int: "int", list: "array", dict: "object"}[type(GOOD[field])]
    expected = rf"failure.json: Expected `{kind}`, got `\w+` - at `\$.{field}`$"
    missing = f"failure.json: Object missing required field `{field}`$"
    with pytest.raises(UsageError, match=missing if wrong == "missing" else expected):
        read_failure(tmp_path)


@pytest.mark.parametrize("field", NEEDED)
def test_a_list_where_a_text_or_a_number_is_wanted(tmp_path: Path, field: str) -> None:
    """Every field is checked before it is used."""
    (tmp_path / FAILURE).write_text(json.dumps({**GOOD, field: []}))
    with pytest.raises(UsageError, match=rf"got `array` - at `\$.{field}`$"):
        read_failure(tmp_path)


@pytest.mark.parametrize("content", [[GOOD], "text", None, 3])
def test_a_failure_that_is_not_an_object(tmp_path: Path, content: object) -> None:
    """A file of something else is refused by what it is, not by the version that it lacks."""
    (tmp_path / FAILURE).write_text(json.dumps(content))
    with pytest.raises(UsageError, match="is not a recorded failure: it is not a JSON object"):
        read_failure(tmp_path)


def test_a_schedule_that_cannot_be_parsed(tmp_path: Path) -> None:
    """A schedule from a file is checked like one that was typed."""
    (tmp_path / FAILURE).write_text(json.dumps({**GOOD, "schedule": "a.b.before=kil"}))
    with pytest.raises(UnknownNameError, match="did you mean 'kill'"):
        read_failure(tmp_path)


class Prepared:
    """An executor that gives prepared results, the last job first."""

    def __init__(self, *results: ExperimentResult) -> None:
        self._results = results
        self.prepared: list[Scenario] = []
        self.jobs: list[Job] = []

    def prepare(self, scenarios: Sequence[Scenario]) -> None:
        """Note what is warmed."""
        self.prepared.extend(scenarios)

    def run(self, jobs: Sequence[Job]) -> Iterator[tuple[int, ExperimentResult]]:
        """Give the results."""
        self.jobs.extend(jobs)
        assert self.prepared
        assert len(jobs) == len(self._results)
        yield from reversed(list(enumerate(self._results)))


OTHER = broken(AT_B, "second")
HUNG = result(AT_B, verdict=Verdict.HUNG)


@pytest.mark.parametrize(
    ("control", "runs", "expected"),
    [
        (HELD, [BROKEN], Reproduction.STILL_BROKEN),
        (HELD, [BROKEN, BROKEN], Reproduction.STILL_BROKEN),
        (HELD, [HELD, HELD], Reproduction.HOLDS_NOW),
        (HELD, [BROKEN, HELD], Reproduction.FLAKY),
        (HELD, [OTHER], Reproduction.DID_NOT_REPRODUCE),
        (HELD, [BROKEN, OTHER], Reproduction.FLAKY),
        (HELD, [HUNG], Reproduction.DID_NOT_REPRODUCE),
        (HELD, [HELD, HUNG], Reproduction.FLAKY),
        (HUNG, [BROKEN], Reproduction.DID_NOT_REPRODUCE),
        (BROKEN, [HELD], Reproduction.DID_NOT_REPRODUCE),
    ],
)
def test_what_came_of_running_it_again(
    control: ExperimentResult, runs: list[ExperimentResult], expected: Reproduction
) -> None:
    """Every run must agree, and the control leg must hold."""
    executor = Prepared(control, *runs)
    tried = scenario()
    came, results = run_again(FAILURE_READ, tried, cast("Executor", executor), len(runs))
    assert came is expected
    assert results == (control, *runs)
    assert executor.prepared == [tried]
    assert [job.schedule for job in executor.jobs] == [CONTROL, *[AT_B] * len(runs)]
    assert {(job.scenario, job.seed) for job in executor.jobs} == {("tried", 3)}


def test_the_exit_codes_of_repro() -> None:
    """README: 1 still broken, 0 holds now, 3 flaky or did not reproduce."""
    assert {each: each.exit_code for each in Reproduction} == {
        Reproduction.STILL_BROKEN: ExitCode.BROKEN,
        Reproduction.HOLDS_NOW: ExitCode.AS_PINNED,
        Reproduction.FLAKY: ExitCode.INCONCLUSIVE,
        Reproduction.DID_NOT_REPRODUCE: ExitCode.INCONCLUSIVE,
    }
