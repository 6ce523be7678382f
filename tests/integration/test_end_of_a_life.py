"""How an incarnation ends: as Python ends a program, and never in its supervisor."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.experiment.handle import Experiment, run_schedule
from harness.model.oracle import Evidence, Finding, OracleStatus
from harness.model.result import Verdict
from harness.model.trace import Death
from harness.model.workload import Command, Workload
from harness.points import crash_point
from harness.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.model.site import Site


class _Holds:
    """An oracle that finds nothing."""

    name = "holds"
    promise = "nothing"

    def check(self, evidence: Evidence) -> Finding:
        """Answer."""
        return Finding(OracleStatus.HOLDS)


def _scenario(worker: Callable[[Site], None]) -> Scenario:
    return Scenario(
        "ends", worker, lambda _: Workload((Command("a"),), Command("b")), (_Holds(),), deadline_s=5
    )


def _close_output() -> None:
    sys.stdout.close()
    sys.stderr.close()


def _no_output() -> None:
    sys.stdout = sys.stderr = None


def _close_descriptors() -> None:
    os.closerange(0, 1024)


def _no_modules() -> None:
    sys.modules.clear()


def _no_exit() -> None:
    def refuse(_code: int) -> None:
        raise RuntimeError("this program ends in no other way")

    os._exit = refuse  # type: ignore[assignment]


def _unwritable() -> None:
    sys.stdout.write("no line")
    os.close(1)


def _hook() -> None:
    def hook(*_error: object) -> None:
        sys.stderr.write("told of it\n")

    sys.excepthook = hook
    raise RuntimeError


def _raise_after_closing() -> None:
    _close_output()
    raise RuntimeError("nobody hears of it")


def _interrupt() -> None:
    raise KeyboardInterrupt


EXITED = "exited with code {}"
ENDS: dict[str, tuple[Callable[[], object], str]] = {
    "closed output": (_close_output, EXITED.format(0)),
    "no output": (_no_output, EXITED.format(0)),
    "closed descriptors": (_close_descriptors, EXITED.format(0)),
    "no modules": (_no_modules, EXITED.format(0)),
    "raised after closing": (_raise_after_closing, EXITED.format(1)),
    "exit 256": (partial(sys.exit, 256), EXITED.format(0)),
    "exit -1": (partial(sys.exit, -1), EXITED.format(255)),
    "exit 2**40": (partial(sys.exit, 2**40), EXITED.format(0)),
    "exit 2**70": (partial(sys.exit, 2**70), EXITED.format(255)),
    "exit with text": (partial(sys.exit, "why"), EXITED.format(1)),
    "interrupted": (_interrupt, "killed by SIGINT"),
    "no way to exit": (_no_exit, EXITED.format(0)),
    "output that cannot be written": (_unwritable, EXITED.format(120)),
    "hook": (_hook, EXITED.format(1)),
    "exit without": (sys.exit, EXITED.format(0)),
}


def _ending(name: str, _site: Site) -> None:
    crash_point("life.end.before")
    ENDS[name][0]()


SAID = {"exit with text": "why\n", "hook": "told of it\n"}


@pytest.mark.parametrize("name", ENDS)
def test_a_life_ends_with_the_code_that_python_gives(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that failed at its end went on as a supervisor, and killed itself and others."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with Experiment(_scenario(partial(_ending, name))) as x:
        one = x.start()
        one.run_until("life.end.before")
        other = x.start()
        assert str(other.run_until_quiet().death) == ENDS[name][1]
        if name in SAID:
            assert other.output() == SAID[name]
        one.resume()
        assert str(one.run_until_quiet().death) == ENDS[name][1]


PROGRAMS = {
    "exit 256": "sys.exit(256)",
    "exit -1": "sys.exit(-1)",
    "exit 2**40": "sys.exit(2**40)",
    "exit 2**70": "sys.exit(2**70)",
    "exit with text": "sys.exit('why')",
    "no output": "sys.stdout = sys.stderr = None",
    "interrupted": "raise KeyboardInterrupt",
    "output that cannot be written": "import os; sys.stdout.write('no line'); os.close(1)",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_codes_are_those_of_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference is the interpreter itself."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{PROGRAMS[name]}"], check=False, capture_output=True
    )
    code = done.returncode
    death = Death(-code, -1) if code < 0 else Death(0, code)
    assert str(death) == ENDS[name][1]


def _unfinished(site: Site) -> None:
    done = site.worker_dir / "done.txt"

    def work() -> None:
        crash_point("thread.work.before")
        with done.open("a", encoding="utf-8") as file:
            file.write("thread\n")

    def at_exit() -> None:
        with done.open("a", encoding="utf-8") as file:
            file.write("exit\n")

    atexit.register(at_exit)
    threading.Thread(target=work).start()


def test_threads_and_exit_handlers_have_their_turn() -> None:
    """A life ended without waiting for its threads, so right workers lost their work."""
    with Experiment(_scenario(_unfinished)) as x:
        one = x.start()
        halt = one.run_until("thread.work.before")
        assert halt.hit is not None
        assert halt.hit.thread
        one.resume()
        assert one.run_until_quiet().quiet
        assert (x.worker_dir / "done.txt").read_text(encoding="utf-8") == "thread\nexit\n"


def _pooled(site: Site) -> None:
    def work() -> None:
        crash_point("thread.work.before")
        (site.worker_dir / "pool").touch()

    ThreadPoolExecutor(1).submit(work)
    process = multiprocessing.get_context("fork").Process(target=(site.worker_dir / "child").touch)
    process.start()


def test_pools_and_processes_are_waited_for() -> None:
    """What the libraries of Python do at the exit of a program was left out."""
    with Experiment(_scenario(_pooled)) as x:
        one = x.start()
        assert one.run_until("thread.work.before").hit is not None
        assert one.run_until_quiet().quiet
        assert {file.name for file in x.worker_dir.iterdir()} == {"pool", "child"}
        x.settle()
        assert x.check().verdict is Verdict.HELD


MODULE = """
import atexit, weakref
SEEN = {seen!r}

def say(word):
    with open(SEEN, "a", encoding="utf-8") as file:
        file.write(word + "\\n")

class Thing:
    pass

THING = Thing()
weakref.finalize(THING, say, "thing of an import")
atexit.register(say, "import")

def warm_up(site):
    atexit.register(say, "warm-up")
    THING.more = Thing()
    weakref.finalize(THING.more, say, "thing of the warm-up")

def worker(site):
    atexit.register(say, "life")
    thing = THING.most = Thing()
    weakref.finalize(thing, say, "thing of a life")
"""


def test_exit_handlers_of_imports_run_and_those_of_the_warm_up_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A life cleared away what all lives share, or left out what its program does at exit."""
    seen = tmp_path / "seen"
    (tmp_path / "with_exit_handlers.py").write_text(MODULE.format(seen=str(seen)), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    program = (
        "from harness.experiment.handle import Experiment\n"
        "from tests.integration.test_end_of_a_life import _scenario\n"
        "import dataclasses, with_exit_handlers as program\n"
        "scenario = dataclasses.replace(_scenario(program.worker), warm=program.warm_up)\n"
        "with Experiment(scenario) as x:\n"
        "    for _ in range(2):\n"
        "        assert x.start().run_until_quiet().quiet\n"
        "    open(program.SEEN, 'a').write('--\\n')\n"
    )
    paths = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    subprocess.run(
        [sys.executable, "-c", program], check=True, env={**os.environ, "PYTHONPATH": paths}
    )
    said, _, _ = seen.read_text(encoding="utf-8").partition("--")
    assert said.split("\n") == ["life", "import", "thing of a life"] * 2 + [""]


def _drawing(site: Site) -> None:
    import random  # noqa: PLC0415 - it must be there before the fork, and is

    (site.worker_dir / f"{site.incarnation}").write_text(str(random.random()), encoding="utf-8")


def test_lives_draw_anew_and_runs_alike() -> None:
    """A generator that was seeded before the fork drew the same in every life."""
    drawn = []
    for seed in (1, 1, 2):
        with Experiment(_scenario(_drawing), seed=seed) as x:
            for _ in range(2):
                x.start().run_until_quiet()
            drawn.append([file.read_text() for file in sorted(x.worker_dir.iterdir())])
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0][0] != drawn[0][1]


def _stopping_itself(_site: Site) -> None:
    crash_point("worker.idle.before")
    os.kill(os.getpid(), signal.SIGSTOP)


def test_a_stop_that_nobody_ordered_is_not_quiet() -> None:
    """A worker that stopped itself after its quiet point never saw the fresh command, and held."""
    scenario = _scenario(_stopping_itself)
    object.__setattr__(scenario, "quiet_at", "worker.idle.before")
    result = run_schedule(scenario, "")
    assert result.verdict is Verdict.WRONG_DEATH
    assert "not by itself at a point where it was ordered to" in result.note


def _reusing_descriptors(site: Site) -> None:
    crash_point("file.open.before")
    os.closerange(3, 1024)
    files = [(site.worker_dir / f"{n}").open("a", encoding="utf-8") for n in range(600)]
    crash_point("file.write.before")
    files[0].write("mine\n")
    crash_point("file.write.after")


def test_the_trace_goes_to_no_file_of_the_worker() -> None:
    """A worker that closes all descriptors found trace lines in its own files, and held."""
    with Experiment(_scenario(_reusing_descriptors)) as x:
        one = x.start()
        assert one.run_until("file.write.after").hit is not None
        assert one.run_until_quiet().quiet
        texts = {file.read_text(encoding="utf-8") for file in x.worker_dir.iterdir()}
        assert texts == {"", "mine\n"}


def _forked_at_a_point(site: Site) -> None:
    inside, go_on = os.pipe(), os.pipe()

    class Slow:
        def __str__(self) -> str:
            os.write(inside[1], b"x")
            os.read(go_on[0], 1)
            return "slow"

    thread = threading.Thread(target=lambda: crash_point("thread.slow.mid", what=Slow()))
    thread.start()
    os.read(inside[0], 1)
    child = os.fork()
    if child == 0:
        crash_point("child.work.before")
        os._exit(7)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.write(go_on[1], b"x")
    thread.join()
    (site.worker_dir / "status").write_text(str(status), encoding="utf-8")


def test_a_child_that_is_forked_while_a_thread_is_at_a_point_goes_on() -> None:
    """The lock of the instrument was copied as it was, so the child waited for ever."""
    with Experiment(_scenario(_forked_at_a_point)) as x:
        assert x.start().run_until_quiet().quiet
        assert (x.worker_dir / "status").read_text(encoding="utf-8") == "7"


def _interrupted_at_a_point(site: Site) -> None:
    signal.signal(signal.SIGUSR1, lambda *_: crash_point("signal.handle.mid"))

    class Interrupting:
        def __str__(self) -> str:
            os.kill(os.getpid(), signal.SIGUSR1)
            return "interrupted"

    crash_point("work.do.mid", what=Interrupting())
    (site.worker_dir / "done").touch()


def test_a_point_in_a_signal_handler_interrupts_another() -> None:
    """A handler that came while its thread was at a point waited for itself."""
    with Experiment(_scenario(_interrupted_at_a_point)) as x:
        one = x.start()
        assert one.run_until("signal.handle.mid").hit is not None
        assert one.run_until_quiet().quiet
        assert (x.worker_dir / "done").exists()


def _killing_itself(site: Site) -> None:
    (site.worker_dir / "pid").write_text(str(os.getpid()), encoding="utf-8")
    crash_point("work.do.before")
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_kills_itself_is_not_struck() -> None:
    """The kernel says SIGKILL of both; a strike is one that the supervisor sent."""
    result = run_schedule(_scenario(_killing_itself), "work.do.after=kill")
    assert result.verdict is Verdict.WRONG_DEATH
    assert "killed by SIGKILL, which the harness had not sent" in result.note
    assert result.fired == ()


def test_a_worker_that_somebody_else_killed_where_it_stood_is_not_struck() -> None:
    """It stopped at its moment, and was dead when the supervisor came to kill it."""
    with Experiment(_scenario(_killing_itself)) as x:
        one = x.start()
        assert one.run_until("work.do.before").hit is not None
        pid = int((x.worker_dir / "pid").read_text(encoding="utf-8"))
        handle = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        select.select([handle], [], [])
        os.close(handle)
        death = one.kill()
        assert death.signal == signal.SIGKILL
        assert not death.killed


def _signalling_its_group(number: int, site: Site) -> None:
    if site.incarnation == 1:
        os.killpg(0, number)
        threading.Event().wait()


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP", "SIGTERM", "SIGUSR1", "SIGKILL"])
def test_a_signal_to_the_group_of_the_worker_is_for_the_worker(name: str) -> None:
    """The lane and the supervisor were of the same group, and the run ended with them."""
    with Experiment(_scenario(partial(_signalling_its_group, signal.Signals[name]))) as x:
        assert str(x.start().run_until_quiet().death) == f"killed by {name}"
        assert x.start().run_until_quiet().quiet


def _ended_by_a_real_time_signal(_site: Site) -> None:
    os.kill(os.getpid(), signal.SIGRTMIN + 6)


def test_a_death_by_a_real_time_signal_has_a_name() -> None:
    """It has none in the `signal` module, and the error of that ended the whole run."""
    result = run_schedule(_scenario(_ended_by_a_real_time_signal), "")
    assert result.verdict is Verdict.WRONG_DEATH
    assert "killed by SIGRTMIN+6" in result.note


@pytest.mark.parametrize("line", ["not json {", '{"a": 1}', '{"label": ["x"], "hits": "q"}', "[]"])
def test_a_trace_that_the_worker_wrote_to_is_no_evidence(line: str) -> None:
    """A forged line ended the whole run."""

    def forge(site: Site) -> None:
        crash_point("work.do.before")
        control = site.worker_dir.parent / "control"
        with (control / f"{site.incarnation}.trace.ndjson").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    result = run_schedule(_scenario(forge), "")
    assert result.verdict is Verdict.UNKNOWN
    assert "has a line that no point has written" in result.note


PARENT = """
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, "-m", "harness", *sys.argv[1:]])
"""


def test_a_parent_that_ignores_its_children_changes_nothing(tmp_path: Path) -> None:
    """An ignored SIGCHLD is inherited, and the kernel then keeps no wait status."""
    run = ["run", "plan-host-plain", "--at", "", "--report", "none", "--out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", PARENT, *run],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
