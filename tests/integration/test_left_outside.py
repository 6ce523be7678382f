"""What a worker leaves outside of its workspace is reported, not shared, and cleared if it is ours.

A crash image has none of it, so nothing but this keeps one experiment out of the next.
"""

from __future__ import annotations

import importlib
import os
import uuid
from mmap import mmap
from typing import TYPE_CHECKING

import pytest

from harness.experiment.lane import Job
from harness.explore.executor import Executor
from harness.model.result import Verdict
from harness.model.schedule import CONTROL, parse
from harness.model.workload import Command, Workload
from harness.oracles.effects import EveryCommandHasEffect
from harness.points import crash_point
from harness.processes.shared_memory import names
from harness.scenario import Scenario
from harness.world.ledger import EffectLedger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.model.result import ExperimentResult
    from harness.model.site import Site

_posixshmem = importlib.import_module("_posixshmem")  # has no types

SCHEDULES = (CONTROL, parse("work.do.before#1=kill"), parse("work.do.before#2=kill"))


def _work(site: Site) -> None:
    ledger = EffectLedger(site.world_dir)
    done = {effect.key for effect in ledger.effects()}
    for command in site.offered:
        crash_point("work.do.before")
        if command.command_id not in done:
            ledger.record("done", command.command_id)


def _make_segment(name: str) -> mmap:
    """Make a segment as the library does, but without a process that deletes it some time."""
    fd = _posixshmem.shm_open(f"/{name}", os.O_CREAT | os.O_EXCL | os.O_RDWR, mode=0o600)
    os.ftruncate(fd, 10)
    return mmap(fd, 10)


def _remove_segment(name: str) -> None:
    _posixshmem.shm_unlink(f"/{name}")


def _workload(_seed: int) -> Workload:
    return Workload((Command("c1"), Command("c2")), fresh=Command("c3"))


def _run(tmp_path: Path, worker: Callable[[Site], None], lanes: int) -> list[ExperimentResult]:
    scenario = Scenario("leaves", worker, _workload, (EveryCommandHasEffect("done"),))
    found: dict[int, ExperimentResult] = {}
    with Executor(lanes, tmp_path) as executor:
        executor.prepare([scenario])
        for jobs in ([SCHEDULES[0]], SCHEDULES[1:]):
            asked = [Job("leaves", schedule, 0) for schedule in jobs]
            for index, result in executor.run(asked):
                found[SCHEDULES.index(jobs[index])] = result
    return [found[index] for index in range(len(SCHEDULES))]


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_segment_is_reported_and_cleared(tmp_path: Path, lanes: int) -> None:
    """No experiment finds what another has left, however many run, and the machine is clean."""
    name = f"left-outside-{os.getpid()}"

    def is_the_only_one(site: Site) -> None:
        with _make_segment(name):
            _work(site)
            _remove_segment(name)

    control, *struck = _run(tmp_path, is_the_only_one, lanes)
    assert control.verdict is Verdict.HELD
    assert {result.oracles[-1] for result in struck} == {"starts-again"}
    outside = {result.outside for result in (control, *struck)}
    assert outside == {("/dev/shm/left-outside-*",)}
    assert name not in names()


def test_a_name_that_is_drawn_is_shown_without_what_is_drawn(tmp_path: Path) -> None:
    """Two runs have equal records, though a segment gets another name in each."""
    begin = f"drawn-{os.getpid()}-"

    def draws_a_name(site: Site) -> None:
        made = _make_segment(f"{begin}{uuid.uuid4().hex}")
        _work(site)
        made.close()

    results = _run(tmp_path, draws_a_name, 1)
    assert {result.verdict for result in results} == {Verdict.HELD}
    assert {result.outside for result in results} == {("/dev/shm/drawn-*-*",)}
    assert not any(name.startswith(begin) for name in names())


def test_a_file_elsewhere_is_reported_and_left(tmp_path: Path) -> None:
    """It may be anybody's, so it is not deleted; but nothing is shared by what depends on it."""
    runs = tmp_path / "runs"

    def appends(site: Site) -> None:
        with runs.open("a", encoding="utf-8") as file:
            file.write(f"{site.incarnation}\n")
        _work(site)

    results = _run(tmp_path, appends, 2)
    assert {result.verdict for result in results} == {Verdict.HELD}
    assert results[0].outside == (str(runs),) or "*" in results[0].outside[0]
    # Four incarnations in each struck experiment and three in the control leg: none was spared.
    lives = runs.read_text(encoding="utf-8").split()
    assert len(lives) == sum(len(result.incarnations) for result in results)
    assert os.path.exists(runs)  # noqa: PTH110 - the file itself, whatever a Path remembers


def test_what_others_make_meanwhile_is_theirs(tmp_path: Path) -> None:
    """A segment that nobody of the worker has is neither reported nor deleted."""
    name = f"of-another-{os.getpid()}"

    with _make_segment(name):
        results = _run(tmp_path, _work, 1)
    assert {result.outside for result in results} == {()}
    assert name in names()
    _remove_segment(name)
