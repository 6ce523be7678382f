"""The verbs of an experiment, one by one, on small workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.experiment.handle import Experiment
from harness.model.errors import DeadlineError, HarnessError, UsageError
from harness.model.result import NotHeldError, Verdict
from harness.model.trace import Death
from harness.model.workload import Command, Workload
from harness.oracles.effects import EveryCommandHasEffect, NoEffectTwice
from harness.oracles.processes import NoSurvivors
from harness.points import crash_point
from harness.scenario import Scenario
from harness.world.ledger import EffectLedger

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.model.site import Site


def charging(site: Site) -> None:
    """Charge each order unless the ledger has it: right alone, wrong beside a second one."""
    ledger = EffectLedger(site.world_dir)
    for order in site.offered:
        known = order.command_id in {effect.key for effect in ledger.effects()}
        crash_point("effect.charge.before", order=order.command_id)
        if not known:
            ledger.record("charge", order.command_id, str(site.incarnation))
        crash_point("effect.charge.after", order=order.command_id)


def failing(_site: Site) -> None:
    """Fail before anything is done."""
    sys.stdout.write("about to fail\n")
    raise ValueError("no such order")


def endless(_site: Site) -> None:
    """Never end and never become quiet."""
    crash_point("wait.begin.before")
    threading.Event().wait()


def self_stopping(_site: Site) -> None:
    """Stop without having been ordered to."""
    os.kill(os.getpid(), signal.SIGSTOP)


def self_stopping_after_a_point(_site: Site) -> None:
    """Pass a point, and stop without having been ordered to."""
    crash_point("effect.charge.before")
    os.kill(os.getpid(), signal.SIGSTOP)


def leaving_a_child(site: Site) -> None:
    """Start a process of its own session and leave it behind."""
    charging(site)
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)


def orders(_seed: int) -> Workload:
    """Ask for two orders."""
    return Workload((Command("o1"), Command("o2")), fresh=Command("o3"))


def scenario(worker: Callable[[Site], None]) -> Scenario:
    """Return a scenario with a worker."""
    return Scenario(
        name=worker.__name__.replace("_", "-"),
        worker=worker,
        workload=orders,
        oracles=(NoEffectTwice(), EveryCommandHasEffect("charge"), NoSurvivors()),
    )


def test_run_until_stops_at_the_moment_and_nothing_has_happened_after_it() -> None:
    """The thread that reached the point goes no further."""
    with Experiment(scenario(charging)) as x:
        a = x.start()
        halt = a.run_until("effect.charge.before[order=o2]")
        assert halt.hit is not None
        assert halt.hit.label == "effect.charge.before"
        assert halt.hit.context == {"order": "o2"}
        assert halt.hit.hits == {"": 2, "order": 1}
        assert [e.key for e in EffectLedger(x.world_dir).effects()] == ["o1"]
        halt = a.run_until("effect.charge.after[order=o2]")
        assert halt.hit is not None
        assert [e.key for e in EffectLedger(x.world_dir).effects()] == ["o1", "o2"]


def test_kill_is_proved_and_recovery_holds() -> None:
    """The death comes from the wait status; the experiment then holds."""
    with Experiment(scenario(charging)) as x:
        a = x.start()
        a.run_until("effect.charge.after")
        death = a.kill()
        assert death == Death(signal.SIGKILL, -1)
        assert death.killed
        x.settle()
        x.check().raise_if_not_held()


def test_zombie_acts_after_its_successor() -> None:
    """A frozen first instance wakes up after the second has done the work.

    The worker looks before it charges, so the zombie, which looked long ago, charges twice: a
    fault that no crash shows.
    """
    with Experiment(scenario(charging)) as x:
        a = x.start()
        a.run_until("effect.charge.before")
        b = x.start(identity="same")
        assert b.run_until_quiet().quiet
        a.resume()
        x.settle()
        check = x.check()
    assert check.verdict is Verdict.BROKEN
    assert [v.message for v in check.violations] == ["charge 'o1' happened 2 times"]
    with pytest.raises(NotHeldError, match="no-effect-twice: charge 'o1' happened 2 times"):
        check.raise_if_not_held()


def test_moment_that_is_not_reached_is_not_a_hit() -> None:
    """Trap 1: a worker that ends first is quiet, and no fault has fired."""
    with Experiment(scenario(charging)) as x:
        halt = x.start().run_until("effect.charge.before#9")
    assert halt.hit is None
    assert halt.quiet


def test_worker_that_fails_is_shown_with_its_output() -> None:
    """A death of another cause is not a strike; the worker's output is kept."""
    with Experiment(scenario(failing)) as x:
        a = x.start()
        halt = a.run_until_quiet()
        assert halt.death == Death(0, 1)
        assert not halt.quiet
        assert "about to fail" in a.output()
        assert "ValueError: no such order" in a.output()


def test_worker_that_never_becomes_quiet_misses_its_deadline() -> None:
    """Every wait has a deadline, and the message says what was waited for."""
    hanging = replace(scenario(endless), deadline_s=0.2)
    with (
        Experiment(hanging) as x,
        pytest.raises(DeadlineError, match=r"waited 0\.2 s in vain for the worker to end"),
    ):
        x.start().run_until_quiet()


@pytest.mark.parametrize("worker", [self_stopping, self_stopping_after_a_point])
def test_stop_from_elsewhere_is_not_taken_for_a_moment(worker: Callable[[Site], None]) -> None:
    """A stop that was not ordered is not a moment, also after a point that was passed."""
    with (
        Experiment(scenario(worker)) as x,
        pytest.raises(HarnessError, match="was stopped, but not by itself"),
    ):
        x.start().run_until("effect.charge.after")


def test_process_that_is_left_behind_is_found_and_ended() -> None:
    """Trap 8: a left-over process is reported, and does not outlive the experiment."""
    with Experiment(scenario(leaving_a_child)) as x:
        x.settle()
        check = x.check()
    assert {v.oracle for v in check.violations} == {"no-survivors"}
    assert "time.sleep(600)" in check.violations[0].message


def test_crash_image_does_not_change_afterwards() -> None:
    """A copy of the workspace at one moment."""
    with Experiment(scenario(charging)) as x:
        a = x.start()
        a.run_until("effect.charge.after")
        image = x.image("mine")
        a.run_until_quiet()
        assert [e.key for e in EffectLedger(image.world_dir).effects()] == ["o1"]
        assert [e.key for e in EffectLedger(x.world_dir).effects()] == ["o1", "o2"]


def test_offered_command_reaches_the_next_incarnation() -> None:
    """A command can be offered at any time between two lives."""
    with Experiment(scenario(charging)) as x:
        x.settle()
        x.offer(Command("o9"))
        x.start().run_until_quiet()
        assert [e.key for e in EffectLedger(x.world_dir).effects()] == ["o1", "o2", "o9"]


def test_verbs_out_of_order_are_refused() -> None:
    """Each step asserts the state it starts from."""
    with Experiment(scenario(charging)) as x:
        a = x.start()
        with pytest.raises(HarnessError, match="has not run, so it cannot be killed"):
            a.kill()
        a.run_until_quiet()
        with pytest.raises(HarnessError, match="is dead, not stopped"):
            a.resume()
        with pytest.raises(UsageError, match="must match noun"):
            a.run_until("Effect")
    with pytest.raises(HarnessError, match="with statement"):
        x.start()


def test_workspace_is_gone_afterwards() -> None:
    """An experiment leaves nothing on disk."""
    with Experiment(scenario(charging)) as x:
        path = x.worker_dir
        assert path.is_dir()
    assert not path.exists()


def printing(_site: Site) -> None:
    """Print, and come to a point."""
    sys.stdout.write("before the strike\n")
    crash_point("work.print.after")


def test_what_was_printed_before_a_strike_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed worker printed is evidence, whatever buffers its output had."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with Experiment(scenario(printing)) as x:
        a = x.start()
        a.run_until("work.print.after")
        a.kill()
        assert a.output() == "before the strike\n"


def killing_its_parent(_site: Site) -> None:
    """Kill the process that forked it."""
    os.kill(os.getppid(), signal.SIGKILL)
    threading.Event().wait()


def test_supervisor_that_is_lost_is_told_at_once() -> None:
    """Used by hand, nothing is run once more; but no deadline is waited for."""
    with Experiment(scenario(killing_its_parent)) as x:
        with pytest.raises(HarnessError, match=r"the supervisor was killed by SIGKILL"):
            x.start().run_until_quiet()
        with pytest.raises(HarnessError, match=r"the supervisor was killed by SIGKILL"):
            x.start().run_until_quiet()


def telling_its_signals(_site: Site) -> None:
    """Print which signals are blocked, and what the usual ones do."""
    sys.stdout.write(f"{signal.pthread_sigmask(signal.SIG_BLOCK, ())}")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        sys.stdout.write(f" {signal.getsignal(number)!r}")
    sys.stdout.write(f" {os.read(0, 1)!r}")


def test_incarnation_begins_with_the_signals_of_a_new_program() -> None:
    """A worker under test lives as it would without a harness."""
    with Experiment(scenario(telling_its_signals)) as x:
        a = x.start()
        a.run_until_quiet()
        default = "<Handlers.SIG_DFL: 0>"
        interrupted = repr(signal.default_int_handler)
        assert a.output() == f"set() {interrupted} {default} {default} b''"


def using_a_closure(word: str) -> Callable[[Site], None]:
    """Return a worker that only ``dill`` can send to another process."""

    def printing_it(_site: Site) -> None:
        sys.stdout.write(f"{word} {sys.modules[__name__].__name__}")

    return printing_it


def test_worker_may_be_a_closure() -> None:
    """Closures are pickled, too."""
    with Experiment(scenario(using_a_closure("hello"))) as x:
        a = x.start()
        a.run_until_quiet()
        assert a.output() == f"hello {__name__}"
