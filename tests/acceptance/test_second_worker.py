"""The engine knows no particular worker: another one, through the same engine.

This file is a scenario file, too: ``crash-harness run --scenarios`` takes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.model.workload import Command as WorkCommand
from harness.model.workload import Workload
from harness.oracles.effects import EveryCommandHasEffect, NoEffectTwice
from harness.oracles.processes import NoSurvivors
from harness.points import crash_point
from harness.scenario import Scenario, broken_by
from harness.world.ledger import EffectLedger

if TYPE_CHECKING:
    from acceptance_command import Command

    from harness.model.site import Site

HERE = "tests/acceptance/test_second_worker.py"
ORACLES = (NoEffectTwice(), EveryCommandHasEffect("charge"), NoSurvivors())


def careful(site: Site) -> None:
    """Charge every order once: ask the ledger before it charges again."""
    done = site.worker_dir / "done.txt"
    ledger = EffectLedger(site.world_dir)
    finished = done.read_text(encoding="utf-8").split() if done.exists() else []
    for order in site.offered:
        if order.command_id in finished:
            continue
        crash_point("order.charge.before", order=order.command_id)
        if order.command_id not in {effect.key for effect in ledger.effects()}:
            ledger.record("charge", order.command_id, f"incarnation {site.incarnation}")
        crash_point("order.charge.after", order=order.command_id)
        with done.open("a", encoding="utf-8") as file:
            file.write(f"{order.command_id}\n")
        crash_point("order.finish.after", order=order.command_id)


def careless(site: Site) -> None:
    """Charge every order that is not written down, whatever the ledger says."""
    done = site.worker_dir / "done.txt"
    finished = done.read_text(encoding="utf-8").split() if done.exists() else []
    for order in site.offered:
        if order.command_id not in finished:
            EffectLedger(site.world_dir).record("charge", order.command_id)
            crash_point("order.write.before", order=order.command_id)
            with done.open("a", encoding="utf-8") as file:
                file.write(f"{order.command_id}\n")


def orders(_seed: int) -> Workload:
    """Ask for three orders."""
    return Workload(tuple(map(WorkCommand, ("o1", "o2", "o3"))), fresh=WorkCommand("o4"))


CAREFUL = Scenario(
    "careful-orders", careful, orders, ORACLES, points=(__name__,), must_reach_all=False
)
CARELESS = Scenario(
    "careless-orders",
    careless,
    orders,
    ORACLES,
    pin=broken_by("no-effect-twice"),
    points=(__name__,),
    must_reach_all=False,
)


def test_second_worker_goes_through_matrix_record_and_repro(command: Command) -> None:
    """A worker of some 20 lines goes through engine, matrix, record and repro."""
    ran = command.run("--scenarios", HERE, "--tier", "full")
    assert ran.code == 0, ran.out + ran.err
    record = command.record()
    verdicts = {(e["scenario"], e["schedule"]): e["verdict"] for e in record["experiments"]}
    assert all(verdict == "held" for (name, _), verdict in verdicts.items() if name[4] == "f")
    assert verdicts["careless-orders", "order.write.before#1=kill"] == "broken"
    recovered = [s for _, s in verdicts if " / " in s]
    assert recovered, "no crash during recovery was tried"
    (broken,) = [e for e in record["experiments"] if e["verdict"] == "broken"]
    assert broken["violations"][0]["message"] == "charge 'o1' happened 2 times"

    folder = command.out / "latest" / "failures" / broken["fingerprint"]
    repro = command("repro", str(folder), "--times", "3")
    assert repro.code == 1, repro.out + repro.err
    assert "still broken: 3 of 3" in repro.out
