"""Lanes and the executor: what they do when something goes wrong."""

from __future__ import annotations

import _thread
import fcntl
import os
import re
import signal
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.experiment.lane import Job, LaneServer
from harness.experiment.lane_client import LaneClient
from harness.experiment.sharing import Sharing
from harness.explore.executor import Executor
from harness.explore.exploration import Exploration
from harness.explore.matrix import run_matrix
from harness.explore.tiers import moment_of, recovery_hits
from harness.images.root import default_root
from harness.images.run_folder import FailureFolder, control_image
from harness.images.scratch import sweep_scratch, take_scratch
from harness.model.errors import HarnessError
from harness.model.oracle import Evidence, Finding, OracleStatus
from harness.model.result import Verdict
from harness.model.schedule import CONTROL, parse
from harness.model.workload import Command, Workload
from harness.points import crash_point
from harness.record.outcome import judge_together
from harness.scenario import Scenario
from scenarios.plan_host.reference import PLAN_HOST
from scenarios.reference import REFERENCE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.model.events import Event
    from harness.model.site import Site


class _Oracle:
    """An oracle with an answer of one's choice."""

    name = "mine"
    promise = "whatever"

    def __init__(self, answer: Callable[[Evidence], Finding]) -> None:
        self.check = answer


def _working(_site: Site) -> None:
    crash_point("work.do.before")
    crash_point("work.do.after")


def _dying_in_recovery(site: Site) -> None:
    crash_point("work.do.before")
    if site.incarnation > 1:
        raise RuntimeError("cannot recover")


def _leaving_a_thread(_site: Site) -> None:
    threading.Thread(target=threading.Event().wait, name="left-over", daemon=True).start()


def _leaving_a_thread_of_c(_site: Site) -> None:
    _thread.start_new_thread(threading.Event().wait, ())


def _scenario(
    name: str,
    worker: Callable[[Site], None] = _working,
    answer: Callable[[Evidence], Finding] = lambda _: Finding(OracleStatus.HOLDS),
    warm: Callable[[Site], None] = lambda _: None,
) -> Scenario:
    return Scenario(
        name,
        worker,
        lambda _: Workload((Command("a"),), Command("b")),
        (_Oracle(answer),),
        warm=warm,
    )


def _run(scenario: Scenario, *schedules: str, root: Path) -> list[Verdict]:
    jobs = [Job(scenario.name, parse(text), 0) for text in schedules]
    with Executor(2, root) as executor:
        executor.prepare([scenario])
        return [result.verdict for _, result in sorted(executor.run(jobs), key=lambda x: x[0])]


def test_results_come_with_the_index_of_their_job(tmp_path: Path) -> None:
    """What is planned in an order is judged in that order."""
    schedules = ["work.do.before=kill", "work.do.before#2=kill", "", "work.do.after=kill"]
    verdicts = _run(_scenario("works"), *schedules, root=tmp_path)
    assert verdicts == [Verdict.HELD, Verdict.NOT_FIRED, Verdict.HELD, Verdict.HELD]


def test_oracle_that_fails_is_unknown(tmp_path: Path) -> None:
    """A checker that crashes says nothing about the worker."""

    def fail(_evidence: Evidence) -> Finding:
        raise ZeroDivisionError("oops")

    scenario = _scenario("oracle-fails", answer=fail)
    assert _run(scenario, "work.do.before=kill", root=tmp_path) == [Verdict.UNKNOWN]


def test_worker_that_dies_in_its_recovery_does_not_start_again(tmp_path: Path) -> None:
    """The commonest report of all: what a killed worker left keeps it from its start."""
    scenario = _scenario("dies", worker=_dying_in_recovery)
    with Executor(1, tmp_path) as executor:
        executor.prepare([scenario])
        ((_, result),) = executor.run([Job("dies", parse("work.do.before=kill"), 0)])
    assert (result.verdict, result.oracles) == (Verdict.BROKEN, ("starts-again",))
    assert "RuntimeError: cannot recover" in result.note
    assert [str(fired.moment) for fired in result.fired] == ["work.do.before#1"]


def _hanging(incarnation: int) -> Callable[[Site], None]:
    def worker(site: Site) -> None:
        crash_point("work.do.before")
        (site.worker_dir / f"began-{site.incarnation}").touch()
        while site.incarnation == incarnation:
            signal.pause()

    return worker


@pytest.mark.parametrize(
    ("incarnation", "said"),
    [
        (2, "recovering, the worker hung: waited 0.5 s in vain for the worker to end"),
        (3, "started again, the worker hung: waited 0.5 s in vain for the worker to end"),
        (4, "offered command 'b', the worker hung: waited 0.5 s in vain for the worker to end"),
    ],
)
def test_worker_that_hangs_after_a_strike_breaks_a_promise_and_is_kept(
    tmp_path: Path, incarnation: int, said: str
) -> None:
    """It was hung and no more: no image, no report, and no oracle that was asked."""
    hangs = replace(_scenario("hangs", worker=_hanging(incarnation)), deadline_s=0.5)
    keep = tmp_path / "kept"
    with Executor(1, tmp_path, keep) as executor:
        executor.prepare([hangs])
        ((_, result),) = executor.run([Job("hangs", parse("work.do.before=kill"), 0)])
    assert (result.verdict, result.oracles) == (Verdict.BROKEN, ("starts-again",))
    assert result.violations[0].message.startswith(said)
    assert [life.number for life in result.incarnations] == list(range(1, incarnation + 1))
    assert result.incarnations[-1].death == "killed by SIGKILL"
    last = FailureFolder(keep / result.fingerprint).end_image(incarnation)
    assert (last / "worker" / f"began-{incarnation}").exists()


def test_second_strike_in_a_dead_incarnation_has_not_fired(tmp_path: Path) -> None:
    """A fault after a kill of the same incarnation cannot happen."""
    schedule = "work.do.before=kill, work.do.after=kill"
    assert _run(_scenario("twice"), schedule, root=tmp_path) == [Verdict.NOT_FIRED]


def _unprepared(root: Path, warm: Callable[[Site], None]) -> str:
    """Return the note of an experiment whose worker cannot be warmed; another one holds."""
    with Executor(1, root) as executor:
        executor.prepare([_scenario("cold", warm=warm), _scenario("warm")])
        jobs = [Job("cold", CONTROL, 0), Job("warm", CONTROL, 0)]
        results = dict(executor.run(jobs))
    assert [results[index].verdict for index in (0, 1)] == [Verdict.UNKNOWN, Verdict.HELD]
    return results[0].note


def test_warm_up_must_leave_no_thread(tmp_path: Path) -> None:
    """Trap 12: a process with threads must not fork."""
    assert "left threads behind: left-over" in _unprepared(tmp_path, _leaving_a_thread)


def test_thread_that_python_does_not_list_is_found(tmp_path: Path) -> None:
    """Trap 12: threads of libraries are threads; the kernel's list has them all."""
    note = _unprepared(tmp_path, _leaving_a_thread_of_c)
    assert re.search(r"left threads behind: thread \d+", note)


def test_warm_up_that_fails_is_told_with_what_it_printed(tmp_path: Path) -> None:
    """Errors are for the reader: which scenario, what was raised, what was said before."""

    def fail(_site: Site) -> None:
        sys.stdout.write("about to fail")
        raise ValueError("no such file")

    assert "'cold' failed: ValueError: no such file\nabout to fail" in _unprepared(tmp_path, fail)


def test_control_leg_that_breaks_makes_everything_unknown(tmp_path: Path) -> None:
    """If the control leg fails, nothing is concluded."""
    scenario = _scenario(
        "control-breaks", answer=lambda _: Finding(OracleStatus.BROKEN, ("always broken",))
    )
    told: list[Event] = []
    with Executor(1, tmp_path) as executor:
        executor.prepare([scenario])
        exploration = Exploration(scenario, "smoke", 0, parse("work.do.before=kill"))
        run_matrix([exploration], executor, told.append)
    (outcome,) = judge_together([exploration.summary()])
    assert [r.verdict for r in outcome.results] == [Verdict.BROKEN, Verdict.UNKNOWN]
    assert outcome.exit_code == 3
    assert outcome.control.schedule == CONTROL
    assert [type(event).__name__ for event in told] == [
        "ScenarioStarted",
        *["Planned", "ExperimentFinished"] * 2,
        "ScenarioFinished",
    ]


def test_lane_deletes_what_dead_lanes_left(tmp_path: Path) -> None:
    """The next run clears what a killed one could not."""
    mine = take_scratch(tmp_path)
    dead = tmp_path / "crash-harness-dead"
    dead.mkdir()
    (dead / "owner.lock").touch()
    (dead / "left.txt").touch()
    foreign = tmp_path / "crash-harness-notours"
    foreign.mkdir()
    sweep_scratch(tmp_path)
    assert mine.exists()
    assert foreign.exists()
    assert not dead.exists()
    lock = os.open(mine / "owner.lock", os.O_RDWR)
    with pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(lock)


def test_lane_that_is_told_to_end_leaves_nothing(tmp_path: Path) -> None:
    """The closed pipe and SIGTERM come together, and neither keeps it from clearing up."""
    for _ in range(8):
        lane = LaneClient(tmp_path)
        lane.call(LaneServer.prepare, PLAN_HOST)
        lane.stop()
        assert list(tmp_path.iterdir()) == []


def test_error_of_the_machine_is_told_in_a_sentence(tmp_path: Path) -> None:
    """Errors are for the reader: a place that cannot be written to gives no traceback."""
    (tmp_path / "file").touch()
    broken = _scenario("breaks", answer=lambda _: Finding(OracleStatus.BROKEN, ("always",)))
    with Executor(1, tmp_path, tmp_path / "file" / "kept") as executor:
        executor.prepare([broken])
        with pytest.raises(HarnessError, match=r"in a lane, run failed: .*Not a directory") as told:
            tuple(executor.run([Job("breaks", parse("work.do.before=kill"), 0)]))
    assert "Traceback" not in str(told.value)


def test_equal_states_are_run_once_and_broken_ones_again(tmp_path: Path) -> None:
    """ARCHITECTURE: a shortcut can spare a life, and never make a verdict that is not held."""
    seen = tmp_path / "lives.txt"

    def worker(site: Site) -> None:
        with seen.open("a", encoding="utf-8") as file:
            file.write(f"{site.incarnation}\n")
        crash_point("work.do.before")
        crash_point("work.do.after")

    def answer(evidence: Evidence) -> Finding:
        labels = [hit.label for hit in evidence.struck[0].hits] if evidence.struck else []
        return (
            Finding(OracleStatus.BROKEN, ("both",))
            if len(labels) > 1
            else Finding(OracleStatus.HOLDS)
        )

    with Executor(1, tmp_path) as executor:
        executor.prepare(
            _scenario(name, worker=worker, answer=answer) for name in ("counts", "breaks")
        )

        def lives_of(
            schedule: str, verdict: Verdict, *, sharing: Sharing = Sharing.ALL, name: str = "counts"
        ) -> list[str]:
            seen.write_text("", encoding="utf-8")
            ((_, result),) = executor.run([Job(name, parse(schedule), 0, sharing=sharing)])
            assert result.verdict is verdict
            assert [fired.incarnation for fired in result.fired] == list(
                range(1, len(result.schedule.incarnations) + 1)
            )
            return seen.read_text(encoding="utf-8").split()

        assert lives_of("work.do.before=kill", Verdict.HELD) == ["1", "2", "3", "4"]
        assert lives_of("work.do.before=kill", Verdict.HELD) == ["1"]
        assert lives_of("work.do.before=kill", Verdict.HELD, sharing=Sharing.NOTHING) == [
            "1",
            "2",
            "3",
            "4",
        ]
        alone = ["1", "2", "3", "4"]
        assert lives_of("work.do.after=kill", Verdict.BROKEN) == ["1", *alone, *alone]
        for _ in range(2):
            lives = lives_of("work.do.after=kill", Verdict.BROKEN, name="breaks")
            assert lives == [*alone, *alone], "what did not hold is not known to others"
        twice = "work.do.before=kill / work.do.{}=kill"
        assert lives_of(twice.format("before"), Verdict.HELD) == ["1", "2", "3", "4", "5"]
        assert lives_of(twice.format("after"), Verdict.HELD) == ["2"]


def test_what_is_shared_changes_no_result() -> None:
    """An experiment comes to the same, whatever was run before it on the same lane."""
    schedules = [parse(first) for first in ("ack.send.before=kill", "artifact.rename.mid=kill")]
    with Executor(1, default_root()) as executor:
        executor.prepare([REFERENCE])
        singles = [Job(REFERENCE.name, schedule, 7) for schedule in schedules]
        jobs = [
            Job(REFERENCE.name, result.schedule.then(moment_of(hit)), 7, digests=True)
            for _, result in executor.run(singles)
            for hit in recovery_hits(result)[::8]
        ]
        shared = dict(executor.run(jobs))
        alone = dict(executor.run([replace(job, sharing=Sharing.NOTHING) for job in jobs]))
    assert len(jobs) > 10
    for index, job in enumerate(jobs):
        struck = slice(len(job.schedule.incarnations) + 1)
        assert shared[index].verdict is alone[index].verdict is Verdict.HELD
        assert shared[index].fired == alone[index].fired
        assert shared[index].incarnations[struck] == alone[index].incarnations[struck]


def test_control_leg_leaves_its_rest_for_the_reports(tmp_path: Path) -> None:
    """A failure is shown beside the control leg, so what that one had is kept."""

    def worker(site: Site) -> None:
        crash_point("work.do.before")
        (site.worker_dir / "done").write_text("once", encoding="utf-8")

    keep = tmp_path / "kept"
    with Executor(1, tmp_path, keep) as executor:
        scenario = _scenario("kept", worker=worker)
        executor.prepare([scenario])
        tuple(executor.run([Job("kept", CONTROL, 0), Job("kept", parse("work.do.before=kill"), 0)]))
        tuple(executor.run([Job("kept", CONTROL, 0)]))
    assert (control_image(keep, "kept") / "worker" / "done").read_text(encoding="utf-8") == "once"
    assert [path.name for path in keep.iterdir()] == ["control"]
