"""Flaky workers: a schedule that comes out differently is neither a failure nor a pass.

The worker here counts its recoveries in a file outside the workspace, so that what comes out
changes from run to run by rule and not by luck.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.experiment.handle import run_schedule
from harness.explore.executor import Executor
from harness.explore.session import run_session
from harness.explore.session_request import SessionRequest
from harness.images.run_folder import RunFolder
from harness.model.result import Verdict
from harness.model.schedule import parse
from harness.model.workload import Command, Workload
from harness.oracles.effects import EveryCommandHasEffect, NoEffectTwice
from harness.points import crash_point
from harness.record.outcome import ExitCode
from harness.replay.reproduce import Failure, Reproduction, run_again
from harness.scenario import Scenario
from harness.world.ledger import EffectLedger

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from harness.model.site import Site

CHARGED = "order.charge.after=kill"


def orders(counter: Path, charges_again: Collection[int]) -> Scenario:
    """Return a worker that charges again after a strike, in some of its recoveries.

    Args:
        counter: Where recoveries are counted, whatever becomes of the workspaces.
        charges_again: Numbers of the recoveries, from 1, that charge again.
    """
    counter.write_text("0", encoding="utf-8")

    def worker(site: Site) -> None:
        ledger = EffectLedger(site.world_dir)
        done = {effect.key for effect in ledger.effects()}
        again = False
        if site.incarnation == 2 and len(site.offered) == 1:
            recoveries = int(counter.read_text(encoding="utf-8")) + 1
            counter.write_text(str(recoveries), encoding="utf-8")
            again = recoveries in charges_again
        for order in site.offered:
            if again or order.command_id not in done:
                ledger.record("charge", order.command_id)
                crash_point("order.charge.after")

    return Scenario(
        "orders",
        worker,
        lambda _: Workload((Command("o1"),), Command("o2")),
        (NoEffectTwice(), EveryCommandHasEffect("charge")),
    )


@pytest.fixture
def counter(tmp_path: Path) -> Path:
    """Return the file of the counter."""
    return tmp_path / "recoveries"


# The control leg's restart is an incarnation 2 as well: the first recovery after a strike is the
# second that is counted in a whole run.
ALWAYS = range(2, 9)
AT_FIRST = (2,)


def test_what_breaks_once_is_flaky_and_tells_both_histories(counter: Path, tmp_path: Path) -> None:
    """It was a failure, or a pass, by the run in which it happened to be seen."""
    result = run_schedule(orders(counter, (1,)), CHARGED, root=tmp_path)
    assert (result.verdict, result.violations) == (Verdict.FLAKY, ())
    assert [fired.incarnation for fired in result.fired] == [1]
    assert result.note.splitlines() == [
        "run twice, the same schedule came out differently",
        "first: broken: no-effect-twice: charge 'o1' happened 2 times",
        "then: held",
        "the traces first differ in incarnation 2, hit 1: order.charge.after#1, then none",
    ]


def test_what_breaks_each_time_is_broken(counter: Path, tmp_path: Path) -> None:
    """Two runs that agree are a failure that can be run again."""
    result = run_schedule(orders(counter, range(1, 9)), CHARGED, root=tmp_path)
    assert (result.verdict, result.oracles) == (Verdict.BROKEN, ("no-effect-twice",))
    assert counter.read_text(encoding="utf-8") == "2"


@pytest.mark.parametrize(
    ("charges_again", "code", "verdict"),
    [
        (AT_FIRST, ExitCode.INCONCLUSIVE, "flaky"),
        (ALWAYS, ExitCode.BROKEN, "broken"),
    ],
)
def test_a_run_with_a_flaky_experiment_is_inconclusive(
    counter: Path, tmp_path: Path, charges_again: Collection[int], code: ExitCode, verdict: str
) -> None:
    """Exit code 3, with the histories in the record, and no failure that is not one."""
    request = SessionRequest((orders(counter, charges_again),), tmp_path, out=tmp_path / "runs")
    result = run_session(request)
    assert result.exit_code is code
    assert result.record is not None
    assert result.directory is not None
    (control, struck) = result.record["experiments"]
    assert (control["verdict"], struck["verdict"]) == ("held", verdict)
    assert result.record["totals"]["flaky"] == (verdict == "flaky")
    failures = [folder.path.name for folder in RunFolder(result.directory).failures()]
    assert failures == ([struck["fingerprint"]] if verdict == "broken" else [])
    if verdict == "flaky":
        (reason,) = result.record["scenarios"][0]["inconclusive"]
        assert reason == f"{struck['id']}: flaky: {struck['note']}"


def test_repro_counts_runs_and_confirms_none(counter: Path, tmp_path: Path) -> None:
    """Its count is the measure of how flaky a failure is, so each run stands for itself."""
    scenario = orders(counter, range(2, 9, 2))
    failure = Failure("", "", "orders", parse(CHARGED), 0)
    with Executor(1, tmp_path) as executor:
        outcome, (_, *runs) = run_again(failure, scenario, executor, times=4)
    assert outcome is Reproduction.FLAKY
    assert [run.verdict for run in runs] == [Verdict.BROKEN, Verdict.HELD] * 2
