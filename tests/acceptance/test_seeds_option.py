"""One command under several seeds: a record for each, and an end that says which were red."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acceptance_command import Command

SECOND = "tests/acceptance/test_second_worker.py"
LUCKY = '''
from harness.model.workload import Command, Workload
from harness.oracles.effects import NoEffectTwice
from harness.points import crash_point
from harness.scenario import Scenario, broken_by
from harness.world.ledger import EffectLedger


def worker(site):
    """Charge again after a crash, but not under seed 2."""
    done = site.worker_dir / "done.txt"
    ledger = EffectLedger(site.world_dir)
    finished = done.read_text().split() if done.exists() else []
    for order in site.offered:
        if order.command_id in finished:
            continue
        if site.seed != 2 or order.command_id not in {e.key for e in ledger.effects()}:
            ledger.record("charge", order.command_id)
        crash_point("order.write.before")
        with done.open("a") as file:
            file.write(f"{order.command_id}\\n")


LUCKY = Scenario(
    name="lucky",
    worker=worker,
    workload=lambda seed: Workload((Command("o1"),), fresh=Command("o2")),
    oracles=(NoEffectTwice(),),
    points=("lucky",),
    pin=broken_by("no-effect-twice"),
)
'''


def test_each_seed_has_its_record_and_its_line(command: Command) -> None:
    """A run under several seeds is a run for each, in their order, and green if all are."""
    ran = command.run("--scenarios", SECOND, "--seeds", "7,0-1")
    assert ran.code == 0, ran.out + ran.err
    lines = re.findall(
        r"^seed (\d+): as pinned: 2 of 2 scenarios; .*; record: (.*)$", ran.out, re.MULTILINE
    )
    assert [seed for seed, _ in lines] == ["7", "0", "1"]
    for seed, folder in lines:
        record = json.loads((Path(folder) / "results.json").read_text(encoding="utf-8"))
        assert record["seed"] == int(seed)
    assert command.record()["seed"] == 1
    assert "seeds: all as pinned under 3 of 3" in ran.out


def test_one_seed_under_which_a_pin_does_not_hold_makes_all_of_it_red(command: Command) -> None:
    """A pin must hold for every seed; the others run all the same, and the end names the seed."""
    file = command.out.parent / "lucky.py"
    file.write_text(LUCKY, encoding="utf-8")
    ran = command.run("--scenarios", str(file), "--seeds", "1-3", "--report", "none")
    assert ran.code == 1, ran.out + ran.err
    assert "pinned broken by no-effect-twice, but none did" in ran.out
    assert "seeds: all as pinned under 2 of 3\n  NOT as pinned: 2\n" in ran.out
    assert re.findall(r"^seed (\d+): as pinned", ran.out, re.MULTILINE) == ["1", "3"]
    records = [
        json.loads((folder / "results.json").read_text(encoding="utf-8"))
        for folder in command.out.glob("2*Z*")
    ]
    assert sorted(record["seed"] for record in records) == [1, 2, 3]
