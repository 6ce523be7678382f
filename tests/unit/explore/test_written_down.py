"""Experiments that are written down: what is known is not run again, and the rest is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self, cast

import pytest
from harness_doubles import result, scenario

from harness.experiment.lane import Job
from harness.explore.written_down import WrittenDown
from harness.images.run_folder import RunFolder
from harness.model.result import Verdict, Violation, fingerprint
from harness.model.schedule import CONTROL, parse
from harness.record.journal import Journal
from harness.record.journal_content import read_journal
from harness.record.journal_format import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from harness.explore.executor import Executor
    from harness.model.result import ExperimentResult
    from harness.scenario import Scenario

JOBS = [
    Job("tried", CONTROL, 0),
    Job("tried", parse("a.b.before=kill"), 0),
    Job("other", CONTROL, 0),
]


class Lanes:
    """An executor that has a result for everything, and is killed when it was asked for too much.

    Args:
        most: How many results it gives.
        breaks: What every experiment breaks.
    """

    def __init__(self, most: int = 99, breaks: tuple[Violation, ...] = ()) -> None:
        self.most = most
        self.breaks = breaks
        self.leaving: frozenset[str] | None = None
        self.warm: list[str] = []
        self.ran: list[Job] = []

    def begin(self, leaving: frozenset[str]) -> Executor:
        """Begin; not twice."""
        assert self.leaving is None
        self.leaving = leaving
        return cast("Executor", self)

    def prepare(self, scenarios: Iterable[Scenario]) -> None:
        """Warm workers."""
        self.warm += [each.name for each in scenarios if each.name not in self.warm]

    def run(
        self, jobs: Sequence[Job], *, keep: bool = True
    ) -> Iterator[tuple[int, ExperimentResult]]:
        """Run experiments, the last one first."""
        assert keep
        for index in reversed(range(len(jobs))):
            if len(self.ran) == self.most:
                raise KeyboardInterrupt
            job = jobs[index]
            assert job.scenario in self.warm
            self.ran.append(job)
            found = result(
                job.schedule,
                scenario=job.scenario,
                seed=job.seed,
                verdict=Verdict.BROKEN if self.breaks else Verdict.HELD,
                violations=self.breaks,
            )
            yield index, replace(found, outside=("/dev/shm/left",) * (job.scenario == "other"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        pass


def begun(run: Path) -> Journal:
    """Begin the journal of a run."""
    run.mkdir(exist_ok=True)
    return Journal.begin(
        run,
        {
            "journal": SCHEMA,
            "started": "2031-02-03T04:05:06+00:00",
            "tier": "smoke",
            "seed": 0,
            "scenarios": ["tried", "other"],
            "command": None,
        },
    )


def run_all(lanes: Lanes, journal: Journal) -> dict[int, ExperimentResult]:
    """Run the jobs, and close the journal."""
    experiments = WrittenDown(journal, lanes.begin)
    try:
        experiments.prepare([scenario("tried"), scenario("other")])
        return dict(experiments.run(JOBS))
    finally:
        experiments.end()
        journal.close(over=False)


@pytest.mark.parametrize("finished", range(len(JOBS) + 1))
def test_what_has_finished_is_not_run_again(tmp_path: Path, finished: int) -> None:
    """A run that is gone on with does what is left, and knows the same in the end."""
    undisturbed = run_all(Lanes(), begun(tmp_path / "undisturbed"))
    first = Lanes(finished)
    if finished < len(JOBS):
        with pytest.raises(KeyboardInterrupt):
            run_all(first, begun(tmp_path / "run"))
    else:
        run_all(first, begun(tmp_path / "run"))
    rest = Lanes()
    assert run_all(rest, Journal.go_on(tmp_path / "run")) == undisturbed
    assert sorted(map(str, first.ran + rest.ran)) == sorted(map(str, JOBS))
    content = read_journal(tmp_path / "run")
    assert len(content.finished) == len(JOBS)
    assert [each["planned"] for each in content.planned] == [len(JOBS)]
    if finished == len(JOBS):
        assert rest.leaving is None, "lanes for nothing"


def test_a_worker_that_leaves_things_outside_is_known_when_a_run_is_gone_on_with(
    tmp_path: Path,
) -> None:
    """Its experiments would share equal states again, or run beside each other."""
    first = Lanes(1)
    with pytest.raises(KeyboardInterrupt):
        run_all(first, begun(tmp_path / "run"))
    assert first.leaving == frozenset()
    rest = Lanes()
    run_all(rest, Journal.go_on(tmp_path / "run"))
    assert rest.leaving == frozenset({"other"})


def test_what_has_lost_its_evidence_is_run_again(tmp_path: Path) -> None:
    """A failure without its crash images could be neither judged again nor looked at."""
    first = Lanes(breaks=(Violation("some", "it is broken"),))
    run_all(first, begun(tmp_path))
    mark = fingerprint("tried", str(JOBS[1].schedule), ["some"])
    RunFolder(tmp_path).failure(mark).images.mkdir(parents=True)
    rest = Lanes()
    run_all(rest, Journal.go_on(tmp_path))
    assert rest.ran == [JOBS[2], JOBS[0]]


def test_what_is_asked_for_otherwise_is_run(tmp_path: Path) -> None:
    """An experiment without sharing, or in an interpreter of its own, is another one."""
    run_all(Lanes(), begun(tmp_path))
    lanes = Lanes()
    journal = Journal.go_on(tmp_path)
    experiments = WrittenDown(journal, lanes.begin)
    experiments.prepare([scenario("tried")])
    others = [
        replace(JOBS[0], fresh=True),
        replace(JOBS[0], digests=True),
        replace(JOBS[0], seed=1),
    ]
    assert set(dict(experiments.run(others))) == {0, 1, 2}
    assert len(lanes.ran) == 3
    journal.close(over=False)
