"""Points in processes that a worker forks: counted in one row, struck, held, and let go on."""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.experiment.handle import Experiment, run_schedule
from harness.explore.executor import Executor
from harness.explore.exploration import Exploration
from harness.explore.matrix import run_matrix
from harness.model.result import Verdict
from harness.model.schedule import CONTROL, parse
from harness.model.workload import Command, Workload
from harness.oracles.effects import EveryCommandHasEffect, NoEffectTwice
from harness.oracles.processes import NoSurvivors
from harness.points import crash_point
from harness.scenario import Scenario
from harness.world.ledger import EffectLedger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.model.site import Site


def _scenario(worker: Callable[[Site], None], deadline_s: float = 10) -> Scenario:
    return Scenario(
        worker.__name__.strip("_").replace("_", "-"),
        worker,
        lambda _: Workload((Command("o1"), Command("o2")), Command("o3")),
        (NoEffectTwice(), EveryCommandHasEffect("charge"), NoSurvivors()),
        deadline_s=deadline_s,
    )


def _charge(site: Site, order: str) -> None:
    """Charge an order unless the ledger has it: right, if it is not struck in between."""
    crash_point("order.charge.before", order=order)
    EffectLedger(site.world_dir).record("charge", order)
    crash_point("order.charge.after", order=order)


def _open_orders(site: Site) -> list[str]:
    charged = {effect.key for effect in EffectLedger(site.world_dir).effects()}
    return [o.command_id for o in site.offered if o.command_id not in charged]


def _forking(site: Site) -> None:
    for order in _open_orders(site):
        child = os.fork()
        if child == 0:
            _charge(site, order)
            os._exit(0)
        os.waitpid(child, 0)
        crash_point("order.wait.after", order=order)


def _starting_processes(site: Site) -> None:
    for order in _open_orders(site):
        process = multiprocessing.get_context("fork").Process(target=_charge, args=(site, order))
        process.start()
        process.join()


def _forking_twice(site: Site) -> None:
    for order in _open_orders(site):
        child = os.fork()
        if child == 0:
            grandchild = os.fork()
            if grandchild == 0:
                _charge(site, order)
                os._exit(0)
            os.waitpid(grandchild, 0)
            os._exit(0)
        os.waitpid(child, 0)


WORKERS = [_forking, _starting_processes, _forking_twice]


@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize(
    "schedule",
    [
        "order.charge.before=kill",
        "order.charge.after#2=kill",
        "order.charge.after[order=o2]=kill",
        "order.charge.before=kill / order.charge.after=kill",
    ],
)
def test_a_child_is_struck_with_all_of_its_worker(
    worker: Callable[[Site], None], schedule: str
) -> None:
    """The child stopped itself, nobody waited for it, and the verdict said that it never came."""
    result = run_schedule(_scenario(worker), schedule)
    assert result.verdict is Verdict.HELD, result.note
    assert [fired.moment for fired in result.fired] == list(parse(schedule).moments)
    assert result.survivors == ()


def test_every_hit_of_a_child_has_a_number_of_its_own(tmp_path: Path) -> None:
    """Each child counted from what its parent had counted, so that two moments were one."""
    explorations = [Exploration(_scenario(worker), "full", 0) for worker in WORKERS]
    with Executor(1, tmp_path) as executor:
        executor.prepare([exploration.scenario for exploration in explorations])
        run_matrix(explorations, executor, lambda _: None)
    for exploration in explorations:
        results = exploration.summary().results
        (control,) = (r for r in results if r.schedule == CONTROL)
        hits = [h.hits[""] for h in control.incarnations[0].hits if h.label == "order.charge.after"]
        assert hits == [1, 2]
        assert {r.verdict for r in results} == {Verdict.HELD}
        assert len({str(r.schedule) for r in results}) == len(results)


def test_a_child_that_was_stopped_goes_on() -> None:
    """Child and worker go on together, and orders that changed meanwhile count for both."""
    with Experiment(_scenario(_forking)) as x:
        one = x.start()
        for moment in (
            "order.charge.before[order=o1]",
            "order.charge.after[order=o1]",
            "order.wait.after[order=o1]",
            "order.charge.before[order=o2]",
        ):
            halt = one.run_until(moment)
            assert halt.hit is not None
            assert halt.hit.child == ("charge" in moment)
            assert f"{halt.hit.label}[order={halt.hit.context['order']}]" == moment
        assert one.run_until_quiet().quiet
        x.settle()
        x.check().raise_if_not_held()


def test_a_child_that_stands_is_killed_beside_another_incarnation() -> None:
    """What the other one has started is not touched."""
    with Experiment(_scenario(_forking)) as x:
        one, other = x.start(), x.start()
        assert one.run_until("order.charge.before[order=o1]").hit is not None
        assert other.run_until("order.charge.after[order=o1]").hit is not None
        assert one.kill().killed
        halt = other.run_until("order.wait.after[order=o1]")
        assert halt.hit is not None
        assert not halt.hit.child
        x.settle()
        x.check().raise_if_not_held()


def _at_once(site: Site) -> None:
    """Have two children come to one point at once, each before the other may go on."""
    ready, go = os.pipe(), os.pipe()
    children = []
    for name in ("one", "two"):
        child = os.fork()
        if child == 0:
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            crash_point("child.work.before", name=name)
            (site.worker_dir / name).touch()
            os._exit(0)
        children.append(child)
    for _ in children:
        os.read(ready[0], 1)
    os.write(go[1], b"xx")
    for child in children:
        os.waitpid(child, 0)


def test_children_that_come_at_once_stop_one_after_the_other() -> None:
    """The second one stopped as well, and nobody let it go on."""
    with Experiment(_scenario(_at_once)) as x:
        one = x.start()
        names = set()
        for ordinal in (1, 2):
            halt = one.run_until(f"child.work.before#{ordinal}")
            assert halt.hit is not None
            names.add(halt.hit.context["name"])
            assert len(list(x.worker_dir.iterdir())) <= ordinal - 1
        assert names == {"one", "two"}
        assert one.run_until_quiet().quiet
        assert len(list(x.worker_dir.iterdir())) == 2


def _leaving_a_child(site: Site) -> None:
    alive, gone = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(gone)
        os.read(alive, 1)
        crash_point("child.work.before")
        (site.worker_dir / "done").touch()
        os._exit(0)
    (site.worker_dir / "pid").write_text(str(child), encoding="utf-8")
    crash_point("worker.end.before")


def test_a_child_without_its_worker_does_not_stop() -> None:
    """Nobody would see it; it stood there for ever."""
    with Experiment(_scenario(_leaving_a_child)) as x:
        one = x.start()
        assert one.run_until("worker.end.before").hit is not None
        handle = os.pidfd_open(int((x.worker_dir / "pid").read_text(encoding="utf-8")))
        halt = one.run_until("child.work.before")
        assert halt.hit is None
        assert halt.death is not None
        assert halt.death.clean
        assert select.select([handle], [], [], 30)[0]
        assert (x.worker_dir / "done").exists()
        os.close(handle)


def _with_two_threads(site: Site) -> None:
    both = threading.Barrier(2)

    def work(name: str) -> None:
        both.wait()
        for _ in range(20):
            crash_point("thread.work.mid", name=name)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (site.worker_dir / "done").touch()


def test_threads_stop_one_after_the_other() -> None:
    """A second thread stopped the process by orders that were over: a stop without a moment."""
    scenario = replace(_scenario(_with_two_threads), quiet_at="thread.work.mid")
    with Experiment(scenario) as x:
        one = x.start()
        for ordinal in range(1, 41):
            halt = one.run_until_quiet()
            assert halt.hit is not None
            assert halt.hit.hits[""] == ordinal
        one.kill()


def _handling_while_it_stands(site: Site) -> None:
    signal.signal(signal.SIGUSR1, lambda *_: crash_point("signal.handle.mid"))
    (site.worker_dir / "pid").write_text(str(os.getpid()), encoding="utf-8")
    crash_point("work.do.before")
    crash_point("work.do.after")


def test_a_handler_that_runs_when_it_goes_on_obeys_the_new_orders() -> None:
    """The signal came while it stood still, and its point was judged by the orders of before."""
    with Experiment(_scenario(_handling_while_it_stands)) as x:
        one = x.start()
        assert one.run_until("work.do.before").hit is not None
        os.kill(int((x.worker_dir / "pid").read_text(encoding="utf-8")), signal.SIGUSR1)
        halt = one.run_until("signal.handle.mid")
        assert halt.hit is not None
        assert halt.hit.label == "signal.handle.mid"
        assert one.run_until_quiet().quiet
