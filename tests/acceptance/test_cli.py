"""The command's contract: what it prints, what it writes, how it exits."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from acceptance_command import Command

SECOND = "tests/acceptance/test_second_worker.py"


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (["run", "referense"], "'reference'"),
        (["run", "reference", "--tier", "smok"], "'smoke'"),
        (["run", "reference", "--at", "ack.send.befor=kill"], "did you mean 'ack.send.before'"),
        (["run", "reference", "--at", "ack.sent.before=kill"], "'ack.send.before'"),
        (["run", "reference", "--at", "akc.sned.befor=kill"], "did you mean 'ack.send.before'"),
        (["run", "reference", "--at", "ack.send.before[comand=c2]=kill"], "'command'"),
        (["run", "reference", "--at", "ack.send.before=kil"], "'kill'"),
        (["run", "reference", "--at", "ack.send.before"], "column 16"),
        (["run", "reference", "--oracle", "boxes-agre"], "'boxes-agree'"),
        (["run", "reference", "--teir", "smoke"], "--tier"),
        (["run", "reference", "--seeds", "9-7"], "did you mean 7-9?"),
        (["run", "reference", "--seeds", "1-3", "--seed", "0"], "--seed and --seeds"),
        (["run", "--scenarios", "nowhere"], "no scenarios at 'nowhere'"),
        (["runn"], "'run'"),
        (["repro", "nowhere"], "no recorded failure"),
        (["points", "no_such_package"], "no_such_package"),
    ],
)
def test_misspelt_name_exits_2_with_the_nearest(
    command: Command, arguments: list[str], nearest: str
) -> None:
    """An unknown name is a usage error that carries the nearest known one."""
    ran = command(*arguments)
    assert ran.code == 2, ran.out + ran.err
    assert nearest in ran.err
    assert not command.out.exists()


def test_fault_that_does_not_fire_exits_3(command: Command) -> None:
    """A run in which nothing was killed is inconclusive, never a pass."""
    ran = command.run("--scenarios", SECOND, "careful-orders", "--at", "order.charge.before#9=kill")
    assert ran.code == 3, ran.out + ran.err
    (_, struck) = command.record()["experiments"]
    assert struck["verdict"] == "not_fired"
    assert struck["fired"] == []
    assert "order.charge.before#9 was not reached" in ran.out


def test_points_lists_every_declared_point(command: Command) -> None:
    """Every declared point with file and line, at least 25, four by name."""
    ran = command("points", "--json")
    points = json.loads(ran.out)
    labels = {point["label"] for point in points}
    assert len(labels) == len(points) >= 25
    assert labels >= {
        "ack.send.before",
        "capability.run.after",
        "checkpoint.save.before",
        "artifact.rename.mid",
    }
    assert all(
        re.fullmatch(r"(worker_under_test|scenarios)/.+\.py", point["file"]) for point in points
    )
    text = command("points").out.splitlines()
    assert len(text) == len(points)
    assert any(re.search(r"ack\.send\.before +\S+\.py:\d+$", line) for line in text)


def test_scenarios_and_oracles_are_listed(command: Command) -> None:
    """`scenarios` and `oracles` list what there is, as text and with `--json`."""
    scenarios = {s["name"]: s["pin"] for s in json.loads(command("scenarios", "--json").out)}
    assert scenarios["reference"] == "holds"
    assert scenarios["ack-before-save"] == "broken:boxes-agree"
    oracles = {o["name"] for o in json.loads(command("oracles", "--json").out)}
    assert {"boxes-agree", "commands-end", "artifacts-whole", "no-survivors"} <= oracles
    assert "boxes-agree" in command("oracles").out
    assert "reference" in command("scenarios").out


def test_two_runs_with_one_seed_give_the_same_record(command: Command) -> None:
    """The record is the same apart from `timing`."""
    records = []
    for _ in range(2):
        ran = command.run("reference", "ack-before-save", "--seed", "3")
        assert ran.code == 0, ran.out + ran.err
        record = command.record()
        del record["timing"]
        records.append(record)
    assert records[0] == records[1]


def test_smoke_strikes_every_declared_point(command: Command) -> None:
    """The smoke tier strikes every declared point of the reference worker, all held."""
    scenarios = json.loads(command("scenarios", "--json").out)
    ran = command.run(*(s["name"] for s in scenarios if s["pin"] == "holds"))
    assert ran.code == 0, ran.out + ran.err
    record = command.record()
    points = json.loads(command("points", "--json").out)
    declared = {p["label"] for p in points if p["file"].startswith("worker_under_test/")}
    struck = {m["moment"].split("#")[0] for m in record["moments"] if m["struck"]}
    assert declared <= struck
    assert all(m["reached"] and m["survived"] and m["source"] for m in record["moments"])
    assert {e["verdict"] for e in record["experiments"]} == {"held"}
    fired = [f for e in record["experiments"] for f in e["fired"]]
    assert len(fired) >= len(declared)
    assert any(f["incarnation"] == 2 for f in fired)
    assert "moments:" in ran.out
    survived = sum(m["survived"] for m in record["moments"])
    assert f"{survived} survived" in ran.out


@pytest.mark.requirement("HAR-01")
def test_declared_point_that_is_never_reached_turns_the_run_red(command: Command) -> None:
    """`must_reach_all` with a point that nothing reaches exits 3 and names it."""
    folder = command.out.parent / "scenarios_with_a_hole"
    folder.mkdir()
    (folder / "hole.py").write_text(
        "from harness.oracles.processes import NoSurvivors\n"
        "from harness.points import crash_point\n"
        "from harness.scenario import Scenario\n"
        "from harness.model.workload import Command, Workload\n"
        "def worker(site):\n"
        "    crash_point('work.do.before')\n"
        "    if not site.offered:\n"
        "        crash_point('work.skip.before')\n"
        "HOLE = Scenario('hole', worker, lambda seed: Workload((Command('a'),), Command('b')),\n"
        "    (NoSurvivors(),), points=('hole',))\n",
        encoding="utf-8",
    )
    ran = command.run("--scenarios", str(folder / "hole.py"))
    assert ran.code == 3, ran.out + ran.err
    assert "hole.py:8: work.skip.before is declared and was never reached" in ran.out
    (missed,) = [m for m in command.record()["moments"] if not m["reached"]]
    assert missed["moment"] == "work.skip.before#1"
