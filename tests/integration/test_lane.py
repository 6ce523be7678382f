"""Lanes and the executor: what they do when something goes wrong."""

from __future__ import annotations

import fcntl
import os
import threading
from typing import TYPE_CHECKING

import pytest

from harness.errors import HarnessError
from harness.explore.executor import Executor
from harness.explore.matrix import run_matrix
from harness.kept import control_image
from harness.lane import Job
from harness.oracles.oracle import Answer, Evidence, Finding
from harness.points import crash_point
from harness.result import Verdict
from harness.scenario import Scenario, Site
from harness.schedule import CONTROL, parse
from harness.scratch import sweep_scratch, take_scratch
from harness.workload import Command, Workload

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.events import Event


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


def _scenario(
    name: str,
    worker: Callable[[Site], None] = _working,
    answer: Callable[[Evidence], Finding] = lambda _: Finding(Answer.HOLDS),
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
    """Rule 6: what is planned in an order is judged in that order."""
    schedules = ["work.do.before=kill", "work.do.before#2=kill", "", "work.do.after=kill"]
    verdicts = _run(_scenario("works"), *schedules, root=tmp_path)
    assert verdicts == [Verdict.HELD, Verdict.NOT_FIRED, Verdict.HELD, Verdict.HELD]


def test_oracle_that_fails_is_unknown(tmp_path: Path) -> None:
    """A checker that crashes says nothing about the worker."""

    def fail(_evidence: Evidence) -> Finding:
        raise ZeroDivisionError("oops")

    scenario = _scenario("oracle-fails", answer=fail)
    assert _run(scenario, "work.do.before=kill", root=tmp_path) == [Verdict.UNKNOWN]


def test_worker_that_dies_in_its_recovery_is_a_wrong_death(tmp_path: Path) -> None:
    """Design, verdict: the worker died of something else."""
    scenario = _scenario("dies", worker=_dying_in_recovery)
    with Executor(1, tmp_path) as executor:
        executor.prepare([scenario])
        ((_, result),) = executor.run([Job("dies", parse("work.do.before=kill"), 0)])
    assert result.verdict is Verdict.WRONG_DEATH
    assert "RuntimeError: cannot recover" in result.note
    assert [str(fired.moment) for fired in result.fired] == ["work.do.before#1"]


def test_second_strike_in_a_dead_incarnation_has_not_fired(tmp_path: Path) -> None:
    """Rule 1: a fault after a kill in the same life cannot happen."""
    schedule = "work.do.before=kill, work.do.after=kill"
    assert _run(_scenario("twice"), schedule, root=tmp_path) == [Verdict.NOT_FIRED]


def test_warm_up_must_leave_no_thread(tmp_path: Path) -> None:
    """Trap 12: a process with threads must not fork."""
    with (
        Executor(1, tmp_path) as executor,
        pytest.raises(HarnessError, match="left threads behind: left-over"),
    ):
        executor.prepare([_scenario("threads", warm=_leaving_a_thread)])


def test_control_leg_that_breaks_makes_everything_unknown(tmp_path: Path) -> None:
    """Rule 5: if the control fails, nothing is concluded."""
    scenario = _scenario(
        "control-breaks", answer=lambda _: Finding(Answer.BROKEN, ("always broken",))
    )
    told: list[Event] = []
    with Executor(1, tmp_path) as executor:
        (outcome,) = run_matrix([scenario], executor, told.append, at=parse("work.do.before=kill"))
    assert [r.verdict for r in outcome.results] == [Verdict.BROKEN, Verdict.UNKNOWN]
    assert outcome.exit_code == 3
    assert outcome.control.schedule == CONTROL
    assert len(told) == 6


def test_lane_deletes_what_dead_lanes_left(tmp_path: Path) -> None:
    """Rule 9: the next run clears what a killed one could not."""
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


def test_equal_states_are_restarted_once_and_broken_ones_again(tmp_path: Path) -> None:
    """ARCHITECTURE: a shortcut can spare a restart, and never make a verdict that is not held."""
    seen = tmp_path / "restarts.txt"

    def worker(site: Site) -> None:
        with seen.open("a", encoding="utf-8") as file:
            file.write(f"{site.incarnation}\n")
        crash_point("work.do.before")
        crash_point("work.do.after")

    def answer(evidence: Evidence) -> Finding:
        labels = [hit.label for hit in evidence.struck[0].hits] if evidence.struck else []
        return Finding(Answer.BROKEN, ("both",)) if len(labels) > 1 else Finding(Answer.HOLDS)

    with Executor(1, tmp_path) as executor:
        scenario = _scenario("counts", worker=worker, answer=answer)
        executor.prepare([scenario])
        before = Job("counts", parse("work.do.before=kill"), 0)
        results = [result.verdict for _, result in executor.run([before, before])]
        assert results == [Verdict.HELD, Verdict.HELD]
        assert seen.read_text(encoding="utf-8").split() == ["1", "2", "3", "4", "1", "2"]
        seen.unlink()
        after = Job("counts", parse("work.do.after=kill"), 0)
        ((_, result),) = executor.run([after])
        assert result.verdict is Verdict.BROKEN
        assert seen.read_text(encoding="utf-8").split() == ["1", "2", "1", "2", "3", "4"]


def test_control_leg_leaves_its_rest_for_the_reports(tmp_path: Path) -> None:
    """Issue 6: a failure is shown beside the control leg, so what that one had is kept."""

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
