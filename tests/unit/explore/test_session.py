"""A session: what is told, what is recorded, and what becomes of a run that is cut short."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from harness_doubles import broken, hits, result, scenario

from harness.explore import session
from harness.explore.session import Session, run_session
from harness.explore.session_request import SessionRequest
from harness.explore.stop_signals import StopRequestedError
from harness.model.errors import HarnessError, UnknownNameError
from harness.model.schedule import CONTROL, Schedule, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from harness.experiment.lane import Job
    from harness.model.events import Event
    from harness.model.result import ExperimentResult
    from harness.record.run_schema import RunRecord
    from harness.scenario import Scenario

AT_B, AT_C = parse("a.b.before=kill"), parse("a.c.before=kill")
TWICE = parse("a.b.before=kill / a.c.before=kill")


class Watcher:
    """A handler that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.closed: list[RunRecord | None] = []

    def start(self, directory: Path | None) -> None:
        """Begin."""
        assert self.told == []
        assert directory is None or directory.is_dir()

    def handle(self, event: Event) -> None:
        """Keep the kind of an event."""
        assert self.closed == [], "an event after the end"
        self.told.append(type(event).__name__)

    def close(self, record: RunRecord | None) -> None:
        """Keep the record."""
        self.closed.append(record)


class Executor:
    """Stands for an executor: two points, of which the second breaks a promise."""

    fails_at: tuple[Schedule, BaseException] | None = None
    open = 0

    def __init__(self, *_arguments: object, **_named: object) -> None:
        Executor.open += 1

    def __exit__(self, *_error: object) -> None:
        Executor.open -= 1

    def prepare(self, scenarios: Iterable[Scenario]) -> None:
        """Warm nothing."""
        tuple(scenarios)

    def run(
        self, jobs: Sequence[Job], *, keep: bool = True
    ) -> Iterator[tuple[int, ExperimentResult]]:
        """Run experiments, one after the other."""
        del keep
        for index, job in enumerate(jobs):
            if self.fails_at is not None and job.schedule == self.fails_at[0]:
                raise self.fails_at[1]
            labels = [hits("a.b.before", "a.c.before"), hits("a.b.before")]
            good = result(job.schedule, labels)
            yield index, good if job.schedule in (CONTROL, AT_B) else broken(job.schedule, "first")


@pytest.fixture(autouse=True)
def executor(monkeypatch: pytest.MonkeyPatch) -> type[Executor]:
    """Give the executor that sessions get."""
    monkeypatch.setattr(session, "Executor", Executor)
    monkeypatch.setattr(Executor, "fails_at", None)
    monkeypatch.setattr(Executor, "open", 0)
    return Executor


def request(tmp_path: Path, at: Schedule | None = None) -> SessionRequest:
    """Ask for a run of one scenario."""
    return SessionRequest(
        (scenario(),),
        tmp_path,
        out=tmp_path / "runs",
        at={} if at is None else {scenario().name: at},
    )


def test_a_run_is_told_recorded_and_ended_in_this_order(tmp_path: Path) -> None:
    """`RunFinished` is the last event, the record comes after it, and no lane is left."""
    watcher = Watcher()
    done = run_session(request(tmp_path), watcher)
    assert watcher.told == [
        "RunStarted",
        "ScenarioStarted",
        "Planned",
        "ExperimentFinished",
        "Planned",
        *["ExperimentFinished"] * 2,
        "ScenarioFinished",
        "ComparingStarted",
        *["ExperimentCompared"] * 3,
        "RunFinished",
    ]
    assert watcher.closed == [done.record]
    assert done.record is not None
    assert (done.exit_code, done.record["interrupted"]) == (1, "")
    assert done.directory is not None
    assert json.loads((done.directory / "results.json").read_text()) == done.record
    assert Executor.open == 0


def test_shrinking_is_told_and_comes_before_the_end(tmp_path: Path) -> None:
    """Up to sixty experiments are no silence: whoever shows progress hears of each."""
    watcher = Watcher()
    done = run_session(request(tmp_path, TWICE), watcher)
    shrinking = watcher.told[watcher.told.index("ScenarioFinished") + 1 :]
    assert shrinking == [
        "ShrinkingStarted",
        "ShorterTried",
        "FailureShrunk",
        "RunFinished",
    ]
    assert done.record is not None
    assert done.record["totals"]["experiments"] == 2, "shrinking is no part of the matrix"


@pytest.mark.parametrize(
    ("error", "code", "why"),
    [
        (StopRequestedError(2), 130, "by SIGINT"),
        (StopRequestedError(15), 143, "by SIGTERM"),
        (KeyboardInterrupt(), 130, "by SIGINT"),
        (HarnessError("lane 7 ended"), 4, "an error of the harness: lane 7 ended"),
        (ZeroDivisionError(), 4, "an error of the harness: ZeroDivisionError"),
    ],
    ids=["SIGINT", "SIGTERM", "Ctrl-C", "lane", "defect"],
)
def test_what_had_finished_is_recorded(
    tmp_path: Path, executor: type[Executor], error: BaseException, code: int, why: str
) -> None:
    """However a run is cut short, its experiments are not lost, and it is not green."""
    executor.fails_at = (AT_C, error)
    watcher = Watcher()
    done = run_session(request(tmp_path), watcher)
    assert watcher.told[-2:] == ["RunFailed" if code == 4 else "Interrupted", "RunFinished"]
    assert done.exit_code == code
    assert done.fault is (error if code == 4 else None)
    assert done.record is not None
    assert [row["schedule"] for row in done.record["experiments"]] == ["", str(AT_B)]
    assert why in done.record["interrupted"]
    assert done.record["totals"]["exit_code"] == code
    assert done.record["scenarios"][0]["finished"] is False
    assert executor.open == 0


def test_interrupted_while_shrinking_keeps_every_experiment(
    tmp_path: Path, executor: type[Executor]
) -> None:
    """The matrix is through; only the shortest schedule is not known."""
    executor.fails_at = (AT_C, StopRequestedError(2))
    done = run_session(request(tmp_path, TWICE))
    assert done.record is not None
    assert done.record["scenarios"][0]["finished"] is True
    assert (done.exit_code, done.record["totals"]["broken"]) == (130, 1)
    assert done.directory is not None
    (failure,) = (done.directory / "failures").glob("*/failure.json")
    minimal = json.loads(failure.read_text())["minimal"]
    assert minimal["how"] == "No shorter one was looked for"


def test_what_arrived_without_its_result_is_deleted(
    tmp_path: Path, executor: type[Executor]
) -> None:
    """A crash image of an experiment whose result never came would be a failure without record."""
    executor.fails_at = (AT_C, StopRequestedError(2))
    with Session(request(tmp_path)) as running:
        (running.kept / "0123456789abcdef" / "images").mkdir(parents=True)
        with pytest.raises(StopRequestedError):
            running.explore()
        running.interrupt(StopRequestedError(2))
        done = running.finish()
    assert done.directory is not None
    assert not (done.directory / "failures").exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), HarnessError("full")], ids=str)
def test_nothing_finished_leaves_no_folder(
    tmp_path: Path, executor: type[Executor], error: BaseException
) -> None:
    """A folder without a record would look like a run."""
    executor.fails_at = (CONTROL, error)
    watcher = Watcher()
    done = run_session(request(tmp_path), watcher)
    assert (done.record, done.directory, watcher.closed) == (None, None, [None])
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_misspelt_label_is_refused_before_there_is_a_folder(tmp_path: Path) -> None:
    """Usage errors leave nothing."""
    asked = SessionRequest((scenario(),), tmp_path, out=tmp_path / "runs", tier="ful")
    with pytest.raises(UnknownNameError, match="full"):
        run_session(asked)
    assert not (tmp_path / "runs").exists()


def test_step_by_step_gives_the_same_record(tmp_path: Path) -> None:
    """Whoever decides what runs when gets the record that the command writes."""
    tried = scenario()
    with Session(request(tmp_path)) as running:
        while wanted := running.exploration(tried).wanted:
            assert running.run(tried, wanted[0]).schedule == wanted[0]
        running.compare()
        running.shrink()
        stepped = running.finish().record
    whole = run_session(request(tmp_path)).record
    assert stepped is not None
    assert whole is not None
    assert {**stepped, "timing": None} == {**whole, "timing": None}


def test_left_without_finish_is_no_run(tmp_path: Path) -> None:
    """A session that somebody leaves by an error of their own keeps no folder."""
    with Session(request(tmp_path)) as running:
        running.explore()
        assert running.kept.parent.is_dir()
    assert list((tmp_path / "runs").iterdir()) == []
    assert Executor.open == 0
