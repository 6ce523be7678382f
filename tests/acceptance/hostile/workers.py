"""Workers that harm themselves, the harness or the machine, one of each kind; and a right one.

Each is the right worker with one act in the middle of its first command.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from harness.model.bounds import Bounds
from harness.model.oracle import Finding, OracleStatus
from harness.model.workload import Command, Workload
from harness.oracles.effects import EveryCommandHasEffect, NoEffectTwice
from harness.oracles.processes import NoSurvivors
from harness.points import crash_point
from harness.scenario import Scenario
from harness.world.ledger import EffectLedger

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.model.oracle import Evidence, Oracle
    from harness.model.site import Site

LEVELS = 1_100
"""More than Python can call itself."""

LONG_NAME = "d" * 200


def two_commands(_seed: int) -> Workload:
    """Return the workload of all."""
    return Workload((Command("o1"), Command("o2")), fresh=Command("o3"))


def do_nothing(_site: Site) -> None:
    """Do no harm."""


@dataclass(frozen=True)
class Doing:
    """The right worker, which does one thing more on the way."""

    act: Callable[[Site], object]

    def __call__(self, site: Site) -> None:
        """Do what is offered."""
        done = site.worker_dir / "done.txt"
        finished = done.read_text(errors="surrogatepass").split() if done.exists() else []
        ledger = EffectLedger(site.world_dir)
        for command in site.offered:
            if command.command_id in finished:
                continue
            crash_point("hostile.charge.before", order=command.command_id)
            if command.command_id == "o1":
                self.act(site)
            if command.command_id not in {effect.key for effect in ledger.effects()}:
                ledger.record("charge", command.command_id)
            crash_point("hostile.charge.after", order=command.command_id)
            with done.open("a", errors="surrogatepass") as file:
                file.write(f"{command.command_id}\n")


def scenario(
    name: str,
    act: Callable[[Site], object] = do_nothing,
    *,
    warm: Callable[[Site], None] = do_nothing,
    workload: Callable[[int], Workload] = two_commands,
    oracles: tuple[Oracle, ...] = (),
    bounds: Bounds | None = None,
    deadline_s: float = 10.0,
) -> Scenario:
    """Return a scenario of the right worker and one thing that is not right."""
    return Scenario(
        name=name,
        worker=Doing(act),
        workload=workload,
        warm=warm,
        oracles=(NoEffectTwice(), EveryCommandHasEffect("charge"), *oracles),
        points=("workers",),
        must_reach_all=False,
        deadline_s=deadline_s,
        bounds=bounds or Bounds(),
    )


# What it does to processes.


def die_of_a_real_time_signal(_site: Site) -> None:
    """Die of a signal that has no name of its own."""
    os.kill(os.getpid(), signal.SIGRTMIN + 6)


def end_its_group(_site: Site) -> None:
    """End whatever has been started with it."""
    os.killpg(0, signal.SIGTERM)
    signal.pause()


def kill_its_parent(_site: Site) -> None:
    """Kill the process that has forked it."""
    os.kill(os.getppid(), signal.SIGKILL)
    signal.pause()


def stop_its_parent(_site: Site) -> None:
    """Stop the process that has forked it."""
    os.kill(os.getppid(), signal.SIGSTOP)
    signal.pause()


def stop_itself(_site: Site) -> None:
    """Stop where nobody has ordered it to."""
    os.kill(os.getpid(), signal.SIGSTOP)


# What it does to files.


def remove_its_workspace(site: Site) -> None:
    """Remove what the harness has made for it, as far as that can be."""
    shutil.rmtree(site.worker_dir.parent, ignore_errors=True)


def remove_the_control_directory(site: Site) -> None:
    """Remove the traces."""
    shutil.rmtree(site.worker_dir.parent / "control")


def replace_the_control_directory(site: Site) -> None:
    """Put a file in the place of the traces."""
    remove_the_control_directory(site)
    (site.worker_dir.parent / "control").write_text("x")


def replace_its_directory(site: Site) -> None:
    """Put a file in the place of its own directory."""
    shutil.rmtree(site.worker_dir)
    site.worker_dir.write_text("x")


def replace_its_output(site: Site) -> None:
    """Put a pipe in the place of its output, and fail."""
    output = site.worker_dir.parent / "control" / f"{site.incarnation}.output.txt"
    output.unlink()
    os.mkfifo(output)
    raise RuntimeError("lost")


def forge_its_trace(site: Site) -> None:
    """Write into its trace what no point has written."""
    trace = site.worker_dir.parent / "control" / f"{site.incarnation}.trace.ndjson"
    with trace.open("a") as file:
        file.write('{"label":["x"],"context":3,"hits":"q","stop":true}\n')


def make_a_long_path(site: Site) -> None:
    """Make directories whose path is longer than the kernel takes."""
    os.chdir(site.worker_dir)
    for _ in range(30):
        Path(LONG_NAME).mkdir(exist_ok=True)
        os.chdir(LONG_NAME)


def make_a_deep_tree(site: Site) -> None:
    """Make more directories in one another than Python can go down by itself."""
    os.chdir(site.worker_dir)
    for _ in range(LEVELS):
        Path("d").mkdir(exist_ok=True)
        os.chdir("d")


def make_what_cannot_be_read(site: Site) -> None:
    """Make files and directories whose modes keep even their owner out."""
    fixed = site.worker_dir / "fixed"
    if not fixed.exists():
        fixed.mkdir()
        (fixed / "inside").write_text("x")
        fixed.chmod(0o555)
        (site.worker_dir / "closed").mkdir(0)
        (site.worker_dir / "secret").touch(0)


def cut_a_database(site: Site) -> None:
    """Leave the beginning of a database, as a copy that was cut short does."""
    (site.worker_dir / "cut.db").write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 3)


# What it takes.


def leave_a_hole(site: Site) -> None:
    """Make a file that is longer than any disk."""
    with (site.worker_dir / "hole").open("wb") as file:
        file.truncate(200 << 30)


def fill_the_disk(site: Site) -> None:
    """Write more than its scenario may."""
    for number in range(4):
        (site.worker_dir / f"big{number}").write_bytes(os.urandom(1 << 20))


def flood_the_output(_site: Site) -> None:
    """Say more than its scenario may write."""
    for _ in range(4):
        os.write(1, b"x" * (1 << 20))


def take_memory(_site: Site) -> None:
    """Take more memory than its scenario may."""
    taken = [bytearray(1 << 26) for _ in range(64)]
    raise RuntimeError(f"it got {len(taken)} pieces")


def open_files(_site: Site) -> None:
    """Open more files than its scenario may."""
    opened = [os.dup(0) for _ in range(2_000)]
    raise RuntimeError(f"it got {len(opened)} files")


def start_processes(_site: Site) -> None:
    """Start more processes than its scenario may, in groups of their own."""
    for _ in range(20):
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
    signal.pause()


def fork_for_ever(_site: Site) -> None:
    """Leave a process that forks and ends, again and again."""
    if os.fork() == 0:
        os.setsid()
        while True:
            if os.fork():
                os._exit(0)


def hang(_site: Site) -> None:
    """Never end."""
    signal.pause()


# What is wrong before it is started, and after.


def leave_a_thread(_site: Site) -> None:
    """Leave a thread in the process that is to fork."""
    threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()


def leave_by_exit(_site: Site) -> None:
    """Raise what is no error of a program."""
    raise SystemExit(3)


def kill_the_lane(_site: Site) -> None:
    """Kill what has started the process that is to fork."""
    parent = Path(f"/proc/{os.getppid()}/comm").parent.name
    os.kill(int(parent), signal.SIGKILL)
    signal.pause()


def workload_that_raises(_seed: int) -> Workload:
    """Raise what is no error of a program."""
    raise SystemExit("no workload today")


def workload_of_nonsense(_seed: int) -> Workload:
    """Return something else."""
    return cast("Workload", ["o1"])


def workload_with_half_a_character(_seed: int) -> Workload:
    """Name a command by what no text can be encoded with."""
    return Workload((Command("o1"), Command("\ud800")), fresh=Command("o3"))


class _Oracle:
    promise = "it judges"

    def __init__(self, name: str, judge: Callable[[], Finding]) -> None:
        self.name = name
        self._judge = judge

    def check(self, _evidence: Evidence) -> Finding:
        """Judge."""
        return self._judge()


def _exit() -> Finding:
    raise SystemExit(0)


def _nothing() -> Finding:
    return cast("Finding", None)


def _held() -> Finding:
    return Finding(OracleStatus.HOLDS)


GOOD = scenario("good", oracles=(_Oracle("judges", _held),))

HELD = (
    GOOD,
    scenario("deep-tree", make_a_deep_tree, deadline_s=60.0),
    scenario("unreadable", make_what_cannot_be_read),
    scenario("cut-database", cut_a_database),
    scenario("flood", flood_the_output),
    scenario("surrogate", workload=workload_with_half_a_character),
)
HARMFUL = (
    scenario("real-time-signal", die_of_a_real_time_signal),
    scenario("ends-group", end_its_group),
    scenario("kills-parent", kill_its_parent),
    scenario("stops-parent", stop_its_parent),
    scenario("stops-itself", stop_itself),
    scenario("removes-workspace", remove_its_workspace),
    scenario("removes-control", remove_the_control_directory),
    scenario("replaces-control", replace_the_control_directory),
    scenario("replaces-directory", replace_its_directory),
    scenario("replaces-output", replace_its_output),
    scenario("forges-trace", forge_its_trace),
    scenario("long-path", make_a_long_path),
    scenario("hole", leave_a_hole),
    scenario("fills-disk", fill_the_disk, bounds=Bounds(workspace_mib=2)),
    scenario("floods-disk", flood_the_output, bounds=Bounds(workspace_mib=2)),
    scenario("takes-memory", take_memory, bounds=Bounds(memory_mib=512)),
    scenario("opens-files", open_files),
    scenario("starts-processes", start_processes, bounds=Bounds(processes=8)),
    scenario("forks-for-ever", fork_for_ever, oracles=(NoSurvivors(),)),
    scenario("hangs", hang, deadline_s=1.0),
    scenario("thread-in-warm-up", warm=leave_a_thread),
    scenario("exit-in-warm-up", warm=leave_by_exit),
    scenario("kill-in-warm-up", warm=kill_the_lane),
    scenario("workload-raises", workload=workload_that_raises),
    scenario("workload-of-nonsense", workload=workload_of_nonsense),
    scenario("oracle-exits", oracles=(_Oracle("leaves", _exit),)),
    scenario("oracle-says-nothing", oracles=(_Oracle("says-nothing", _nothing),)),
)
