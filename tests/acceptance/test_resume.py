"""A run that is cut short, gone on with, ends as one that nobody disturbed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from acceptance_command import DEADLINE_S, ROOT, Command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

KILLS = int(os.environ.get("CRASH_HARNESS_KILLS", "1"))
"""How many runs are cut short in each way."""

SCENARIOS = '''
import os
from pathlib import Path

from harness import Command, EffectLedger, EveryCommandHasEffect, NoEffectTwice, Scenario, Workload
from harness import broken_by
from harness.points import crash_point


def careful(site):
    """Charge each order once, whatever happens."""
    charge(site, {effect.key for effect in EffectLedger(site.world_dir).effects()})


def careless(site):
    """Charge an order again that was not known to be done."""
    charge(site, {path.name for path in site.worker_dir.iterdir()})


def charge(site, done):
    """Charge the orders that are not done; a point of recovery alone makes tries for shrinking."""
    if site.incarnation > 1:
        crash_point("order.recovery.before")
    for order in site.offered:
        crash_point("order.look.before", order=order.command_id)
        if order.command_id not in done:
            EffectLedger(site.world_dir).record("charge", order.command_id)
            crash_point("order.charge.after", order=order.command_id)
            (site.worker_dir / order.command_id).touch()


def leaving(site):
    """Charge as it should be done, and leave something where no crash image has it."""
    Path(f"/dev/shm/resumed_shop_{os.getpid()}").touch()
    careful(site)


def orders(_seed):
    return Workload((Command("o1"), Command("o2")), fresh=Command("o3"))


ORACLES = (NoEffectTwice(), EveryCommandHasEffect("charge"))
ALL = [
    Scenario("careful", careful, orders, ORACLES, points=("resumed_shop",)),
    Scenario("leaving", leaving, orders, ORACLES, points=("resumed_shop",)),
    Scenario(
        "careless",
        careless,
        orders,
        ORACLES,
        pin=broken_by("no-effect-twice", tier="full"),
        points=("resumed_shop",),
    ),
]
'''


@dataclass(frozen=True)
class Shop:
    """A folder with scenarios, and what running them comes to.

    Attributes:
        file: The scenarios.
        whole: The record of a run that nobody disturbed, without its timing.
        failures: The records of its failures, by fingerprint.
        lines: How many lines its journal had, to draw from.
    """

    file: Path
    whole: dict[str, Any]
    failures: dict[str, Any]
    lines: int

    @property
    def arguments(self) -> tuple[str, ...]:
        """What the command is told."""
        return ("--scenarios", str(self.file), "--tier", "full", "--jobs", "2")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Give the scenarios, with what an undisturbed run of them comes to."""
    folder = tmp_path_factory.mktemp("shop")
    file = folder / "resumed_shop.py"
    file.write_text(SCENARIOS, encoding="utf-8")
    command = Command(folder / "whole")
    ran = command.run("--scenarios", str(file), "--tier", "full", "--report", "ndjson")
    assert ran.code == 0, ran.out + ran.err
    events = (command.out / "latest" / "events.ndjson").read_text(encoding="utf-8").splitlines()
    kinds = [json.loads(event)["event"] for event in events]
    done = sum(
        kind in ("experiment_finished", "experiment_compared", "shorter_tried") for kind in kinds
    )
    assert [row for row in command.record()["scenarios"] if row["outside"]], "nothing is left"
    assert "shorter_tried" in kinds, "nothing is shrunk, so nothing is shown of it"
    assert not (command.out / "latest" / "journal.ndjson").exists(), (
        "a journal of a run that is over"
    )
    return Shop(
        file, without_timing(command.record()), failures(command.out / "latest", file), done
    )


def without_timing(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record without what may differ."""
    return {key: value for key, value in record.items() if key != "timing"}


def failures(run: Path, file: Path) -> dict[str, Any]:
    """Return the records of the failures of a run of scenarios in a file."""
    found = {}
    for path in run.glob("failures/*/failure.json"):
        # A test may have the scenarios in a folder of its own.
        text = path.read_text(encoding="utf-8").replace(str(file.parent), "FOLDER")
        found[path.parent.name] = json.loads(text)
    return found


def drawn(what: str) -> random.Random:
    """Return a generator whose seed is printed; the environment can set it to see a case again."""
    seed = os.environ.get("CRASH_HARNESS_TEST_SEED") or str(random.SystemRandom().getrandbits(32))
    print(f"drawn from CRASH_HARNESS_TEST_SEED={seed}")  # noqa: T201 - shown when a test fails
    return random.Random(f"{what}/{seed}")


def journals(out: Path) -> list[Path]:
    """Return the journals that are there."""
    return list(out.glob("2*/journal.ndjson"))


def run_until(
    out: Path, arguments: tuple[str, ...], reached: Callable[[], bool], how: signal.Signals
) -> tuple[int, str]:
    """Run the command, and send it a signal when something is reached.

    Returns:
        Its exit code and its standard error; it may have come to its end before.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", "run", "--out", str(out), *arguments],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + DEADLINE_S
    family: list[psutil.Process] = []
    while process.poll() is None and not reached():
        assert time.monotonic() < end, "it is not reached"
        os.sched_yield()
    if process.poll() is None:
        family = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(how)
    _, err = process.communicate(timeout=DEADLINE_S)
    _, alive = psutil.wait_procs(family, timeout=DEADLINE_S)
    assert not alive
    return process.returncode, err


def has_lines(out: Path, lines: int) -> Callable[[], bool]:
    """Return what tells whether the journals have so many lines."""
    return lambda: sum(_lines(path) for path in journals(out)) >= lines


def has_seed(out: Path, seed: int) -> Callable[[], bool]:
    """Return what tells whether an experiment under a seed has finished."""
    wanted = f'"seed":{seed},"digests"'.encode()
    return lambda: any(wanted in _read(path) for path in journals(out))


def _lines(path: Path) -> int:
    return _read(path).count(b"\n")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # the run has come to its end
        return b""


def check_same(shop: Shop, out: Path, file: Path | None = None) -> None:
    """See that the latest run is what an undisturbed one is, and that no journal is left."""
    run = (out / "latest").resolve()
    record = json.loads((run / "results.json").read_text(encoding="utf-8"))
    assert without_timing(record) == shop.whole
    assert len(record["timing"]["each"]) == len(record["experiments"])
    assert failures(run, file or shop.file) == shop.failures
    assert journals(out) == []
    assert [path.name for path in out.glob("2*")] == [run.name], "gone on with in its folder"
    assert not (run / "failures" / "control").exists()


@pytest.mark.parametrize("case", range(KILLS))
@pytest.mark.parametrize(
    "signals",
    [
        (signal.SIGKILL,),
        pytest.param((signal.SIGTERM,), marks=pytest.mark.nightly),
        pytest.param((signal.SIGKILL, signal.SIGKILL), marks=pytest.mark.nightly),
        pytest.param((signal.SIGTERM, signal.SIGKILL), marks=pytest.mark.nightly),
    ],
    ids=lambda signals: "-".join(number.name for number in signals),
)
def test_gone_on_with_it_ends_as_if_nothing_had_happened(
    shop: Shop, command: Command, signals: tuple[signal.Signals, ...], case: int
) -> None:
    """Hours of experiments are not lost to a kill, and its record does not show that there was one.

    Killed once or twice at any moment of the matrix, of the comparison or of shrinking.
    """
    draw = drawn(f"{signals}/{case}")
    # Beside what finishes, the journal has its first line and one for each round.
    moments = sorted(draw.randrange(3, shop.lines) for _ in signals)
    arguments = shop.arguments
    for number, lines in zip(signals, moments, strict=True):
        code, err = run_until(command.out, arguments, has_lines(command.out, lines), number)
        assert code == (-signal.SIGKILL if number is signal.SIGKILL else 143), err
        assert "Traceback" not in err
        (journal,) = journals(command.out)
        assert _lines(journal) >= lines
        arguments = ("--resume",)
        half_done = command("report", str(journal.parent))
        assert half_done.code == 3
        assert "is not over" in half_done.out
        assert "experiments have finished" in half_done.out
        assert "it was cut short" in half_done.out
    ran = command.run("--resume")
    assert ran.code == 0, ran.out + ran.err
    assert "experiments had finished" in ran.out
    check_same(shop, command.out)


def test_what_a_killed_run_found_can_be_seen_and_run_again(shop: Shop, command: Command) -> None:
    """Before anybody goes on with it, its failures can be listed and reproduced."""
    run_until(command.out, shop.arguments, has_lines(command.out, shop.lines), signal.SIGKILL)
    (journal,) = journals(command.out)
    run = journal.parent
    report = command("report", str(run))
    assert (report.code, report.out.count("broken: careless[")) == (3, len(shop.failures))
    recheck = command("recheck", str(run))
    assert (recheck.code, "is not over" in recheck.out) == (3, True)
    fingerprint = min(shop.failures)
    again = command("repro", str(run / "failures" / fingerprint))
    assert again.code == 1, again.out + again.err
    assert f"still broken: 1 of 1 runs gave fingerprint {fingerprint}" in again.out


def test_what_cannot_be_gone_on_with_is_refused_with_a_sentence(
    shop: Shop, command: Command, tmp_path: Path
) -> None:
    """Another tier, other code, a run that is over: it would be a record that nobody asked for."""
    file = tmp_path / "resumed_shop.py"
    file.write_text(SCENARIOS, encoding="utf-8")
    none = command.run("--resume")
    assert (none.code, "was cut short" in none.err) == (2, True)
    arguments = ("--scenarios", str(file), "--tier", "full", "--jobs", "2")
    run_until(command.out, arguments, has_lines(command.out, 10), signal.SIGKILL)
    (journal,) = journals(command.out)
    before = journal.read_bytes()
    for contradiction, says in [
        (["--tier", "deep"], "--tier deep contradicts"),
        (["--seed", "3"], "--seed 3 contradicts"),
        (["--scenarios", str(shop.file)], "--scenarios"),
        (["--oracle", "no-effect-twice"], "--oracle no-effect-twice contradicts"),
        (["--at", ""], "--at"),
    ]:
        refused = command.run("--resume", journal.parent.name, *contradiction)
        assert (refused.code, says in refused.err) == (2, True), refused.err
    file.write_text(SCENARIOS.replace("order.look", "order.see"), encoding="utf-8")
    refused = command.run("--resume")
    assert (refused.code, "resumed_shop.py changed since" in refused.err) == (2, True), refused.err
    assert journal.read_bytes() == before, "a refusal leaves what it refuses alone"
    file.write_text(SCENARIOS, encoding="utf-8")
    assert command.run("--resume", str(journal.parent), "--tier", "full", "--jobs", "1").code == 0
    check_same(shop, command.out, file)
    over = command.run("--resume", "latest")
    assert (over.code, "is over" in over.err) == (2, True), over.err


def test_a_run_that_lives_is_left_to_its_process(shop: Shop, command: Command) -> None:
    """Two processes that write one journal would spoil it; `report` looks and does not touch."""
    said = [sys.executable, "-m", "harness", "run", "--out", str(command.out), *shop.arguments]
    process = subprocess.Popen(said, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + DEADLINE_S
        while not any(_lines(path) > 2 for path in journals(command.out)):
            assert time.monotonic() < end
            os.sched_yield()
        process.send_signal(signal.SIGSTOP)
        (journal,) = journals(command.out)
        refused = command.run("--resume")
        assert (refused.code, "process that lives" in refused.err) == (2, True), refused.err
        report = command("report", str(journal.parent))
        assert (report.code, "it is still running" in report.out) == (3, True)
        process.send_signal(signal.SIGCONT)
        assert process.wait(DEADLINE_S) == 0
    finally:
        process.kill()
    check_same(shop, command.out)


@pytest.mark.nightly
def test_several_seeds_are_gone_on_with_from_the_one_that_was_cut_short(
    shop: Shop, command: Command
) -> None:
    """The seeds before it are not run again, those after it are, and the end speaks of all."""
    arguments = ("--scenarios", str(shop.file), "careful", "--seeds", "4-6")
    one = command.run(*arguments[:3], "--seed", "4")
    assert one.code == 0
    first = (command.out / "latest").resolve().name
    # The second seed's run is the only one with a journal once the first is over.
    code, _ = run_until(command.out, arguments, has_seed(command.out, 5), signal.SIGKILL)
    assert code == -signal.SIGKILL
    (journal,) = journals(command.out)
    done = {path.name for path in command.out.glob("2*")}
    ran = command.run("--resume")
    assert ran.code == 0, ran.out + ran.err
    assert "all as pinned under 3 of 3" in ran.out
    assert journals(command.out) == []
    new = {path.name for path in command.out.glob("2*")} - done
    assert len(new) == 1, "seed 6, in a folder of its own"
    seeds = {
        json.loads((path / "results.json").read_text(encoding="utf-8"))["seed"]
        for path in command.out.glob("2*")
        if path.name != first
    }
    assert seeds == {4, 5, 6}
    assert journal.parent.name in done


def test_five_times_ctrl_c_loses_nothing(shop: Shop, command: Command) -> None:
    """Whoever does not wait for the record gets no traceback, and can go on all the same."""
    said = [sys.executable, "-m", "harness", "run", "--out", str(command.out), *shop.arguments]
    process = subprocess.Popen(
        said, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    family = []
    try:
        end = time.monotonic() + DEADLINE_S
        while not any(_lines(path) > 12 for path in journals(command.out)):
            assert time.monotonic() < end
            os.sched_yield()
        family = psutil.Process(process.pid).children(recursive=True)
        for _ in range(5):
            process.send_signal(signal.SIGINT)
            os.sched_yield()
        _, err = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
    _, alive = psutil.wait_procs(family, timeout=DEADLINE_S)
    assert not alive
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "--resume" in err
    assert command.run("--resume").code == 0
    check_same(shop, command.out)


def test_what_a_killed_pytest_had_found_is_shown(command: Command, tmp_path: Path) -> None:
    """It writes a journal as the command does; only, nobody but pytest can run its items."""
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "resumed_shop.py").write_text(SCENARIOS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = scenarios\n", encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "scenarios", f"--crash-out={command.out}"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + DEADLINE_S
        while not any(_lines(path) > 2 for path in journals(command.out)):
            assert time.monotonic() < end
            assert process.poll() is None, "it ended without a journal"
            os.sched_yield()
    finally:
        process.kill()
        process.wait()
    (journal,) = journals(command.out)
    report = command("report", str(journal.parent))
    assert (report.code, "experiments have finished; it was cut short" in report.out) == (3, True)
    assert "run again what began it" in report.out
    refused = command.run("--resume", journal.parent.name)
    assert (refused.code, "run again what began it" in refused.err) == (2, True)
