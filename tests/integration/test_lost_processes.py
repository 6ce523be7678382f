"""Workers that end or stop a process of the harness: it is their verdict, and nobody else's."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pytest

from harness.experiment.lane import Job
from harness.explore.executor import Executor
from harness.model.oracle import Evidence, Finding, OracleStatus
from harness.model.result import Verdict
from harness.model.schedule import CONTROL, parse
from harness.model.workload import Command, Workload
from harness.points import crash_point
from harness.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable

    from _pytest.mark import ParameterSet

    from harness.model.result import ExperimentResult
    from harness.model.site import Site
    from harness.world.services.effects import EffectsService


@pytest.fixture
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a directory for workspaces whose path leaves room for a Unix socket, with xdist too."""
    return tmp_path_factory.mktemp("r")


class _Holds:
    name = "holds"
    promise = "whatever"

    def check(self, _evidence: Evidence) -> Finding:
        return Finding(OracleStatus.HOLDS)


def effects() -> EffectsService:
    """Make a service, so that there is a world."""
    from harness.world.services.effects import EffectsService  # noqa: PLC0415

    return EffectsService()


def supervisor() -> int:
    """Return the pid of the supervisor above this incarnation."""
    return os.getppid()


def lane() -> int:
    """Return the pid of the lane above this incarnation."""
    status = Path(f"/proc/{supervisor()}/stat").read_text(encoding="utf-8")
    return int(status.rpartition(")")[2].split()[1])


def world() -> int:
    """Return the pid of the world beside this incarnation's supervisor."""
    below = Path(f"/proc/{lane()}/task/{lane()}/children").read_text(encoding="utf-8").split()
    (other,) = {int(pid) for pid in below} - {supervisor()}
    return other


def sends(number: signal.Signals, whom: Callable[[], int]) -> Callable[[Site], None]:
    """Return a worker that sends a signal and waits for ever."""

    def worker(_site: Site) -> None:
        crash_point("work.do.before")
        os.kill(whom(), number)
        Event().wait()

    return worker


def good(_site: Site) -> None:
    """Work."""
    crash_point("work.do.before")


def scenario(name: str, worker: Callable[[Site], None], **more: object) -> Scenario:
    """Return a scenario of a worker, with a world."""
    return Scenario(
        name,
        worker,
        lambda _: Workload((Command("a"),), Command("b")),
        (_Holds(),),
        services=(effects,),
        **more,  # type: ignore[arg-type]
    )


def run_all(root: Path, lanes: int, *scenarios: Scenario) -> dict[str, list[ExperimentResult]]:
    """Run the control leg and a strike of each, and return the results."""
    jobs = [
        Job(each.name, schedule, 0)
        for each in scenarios
        for schedule in (CONTROL, parse("work.do.before=kill"))
    ]
    results: dict[str, list[ExperimentResult]] = {each.name: [] for each in scenarios}
    with Executor(lanes, root) as executor:
        executor.prepare(scenarios)
        for _, result in sorted(executor.run(jobs), key=lambda pair: pair[0]):
            results[result.scenario].append(result)
    assert list(root.iterdir()) == []
    return results


def night(*case: object) -> ParameterSet:
    """Return a case that is left to the nights, as each takes many seconds."""
    return pytest.param(*case, marks=pytest.mark.nightly)


@pytest.mark.parametrize(
    ("whom", "number", "said"),
    [
        (supervisor, signal.SIGKILL, "the supervisor was killed by SIGKILL"),
        night(supervisor, signal.SIGTERM, "the supervisor was killed by SIGTERM"),
        (supervisor, signal.SIGSTOP, "the supervisor was stopped by SIGSTOP"),
        night(supervisor, signal.SIGSEGV, "the supervisor was killed by SIGSEGV"),
        (lane, signal.SIGKILL, "the lane was killed by SIGKILL"),
        night(lane, signal.SIGTERM, "the lane was killed by SIGTERM"),
        night(lane, signal.SIGSTOP, "the lane was stopped by SIGSTOP"),
        (world, signal.SIGKILL, "the world was killed by SIGKILL"),
        night(world, signal.SIGSTOP, "the world was stopped by SIGSTOP"),
    ],
)
def test_who_ends_a_process_of_the_harness_is_told_so(
    root: Path, whom: Callable[[], int], number: signal.Signals, said: str
) -> None:
    """It ended the run of everybody with exit code 4, or after a minute with a wrong reason."""
    bad = scenario("bad", sends(number, whom), deadline_s=3.0)
    results = run_all(root, 1, bad, scenario("good", good))
    assert [result.verdict for result in results["good"]] == [Verdict.HELD] * 2
    for result in results["bad"]:
        assert result.verdict is Verdict.WRONG_DEATH
        assert f"{said}, and so it was again when it was run once more" in result.note


@pytest.mark.parametrize("whom", [supervisor, lane, world])
def test_what_is_lost_once_leaves_no_trace_in_the_result(
    root: Path, tmp_path: Path, whom: Callable[[], int]
) -> None:
    """Somebody outside may have killed it; the experiment is run once more, and that counts."""
    sent = tmp_path / "sent"

    def once(_site: Site) -> None:
        crash_point("work.do.before")
        if not sent.exists():
            sent.touch()
            os.kill(whom(), signal.SIGKILL)
            Event().wait()

    (calm,) = run_all(root, 1, scenario("same", good)).values()
    (hit,) = run_all(root, 2, scenario("same", once)).values()
    assert sent.exists()
    assert [(r.verdict, r.note, r.fired) for r in hit] == [
        (r.verdict, r.note, r.fired) for r in calm
    ]
    assert all(result.verdict is Verdict.HELD for result in hit)


@pytest.mark.parametrize(
    ("whom", "said"),
    [
        (os.getpid, "during the warm-up of 'bad', the supervisor was killed by SIGKILL"),
        (os.getppid, "during the warm-up of 'bad', the lane was killed by SIGKILL"),
    ],
)
def test_a_warm_up_that_ends_a_process_of_the_harness_is_named(
    root: Path, whom: Callable[[], int], said: str
) -> None:
    """Nothing of such a scenario can be run; its verdict says so, and the others go on."""

    def warm(_site: Site) -> None:
        os.kill(whom(), signal.SIGKILL)
        Event().wait()

    results = run_all(root, 1, scenario("bad", good, warm=warm), scenario("good", good))
    assert [result.verdict for result in results["good"]] == [Verdict.HELD] * 2
    for result in results["bad"]:
        assert result.verdict is Verdict.UNKNOWN
        assert said in result.note
