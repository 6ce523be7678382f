"""Forks and interpreters: what a module makes at import is not to outlive a kill unnoticed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.experiment.handle import Experiment, run_schedule
from harness.images.run_folder import RunFolder
from harness.model.oracle import Evidence, Finding, OracleStatus
from harness.model.result import Verdict
from harness.model.workload import Command, Workload
from harness.points import crash_point
from harness.scenario import Scenario

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.site import Site

NAMED_AT_IMPORT = """
import uuid
from harness.model.workload import Command, Workload
from harness.oracles.effects import EveryCommandHasEffect
from harness.points import crash_point
from harness.scenario import Scenario
from harness.world.ledger import EffectLedger

OWNER = uuid.uuid4().hex

def worker(site):
    lock = site.worker_dir / "lock"
    if lock.exists() and lock.read_text() != OWNER:
        return
    lock.write_text(OWNER)
    crash_point("lock.take.after")
    ledger = EffectLedger(site.world_dir)
    done = {effect.key for effect in ledger.effects()}
    for command in site.offered:
        if command.command_id not in done:
            ledger.record("charge", command.command_id)
    lock.unlink()

LOCK = Scenario(
    name="lock", worker=worker,
    workload=lambda seed: Workload((Command("o1"),), fresh=Command("o2")),
    oracles=(EveryCommandHasEffect("charge"),), points=("locking",), fresh=FRESH,
)
"""

IN_THE_ORDER_OF_A_SET = """
from harness.model.workload import Command, Workload
from harness.oracles.effects import NoEffectTwice
from harness.points import crash_point
from harness.scenario import Scenario
from harness.world.ledger import EffectLedger

def worker(site):
    ledger = EffectLedger(site.world_dir)
    done = site.worker_dir / "done"
    finished = done.read_text().split() if done.exists() else []
    for key in {c.command_id for c in site.offered} - set(finished):
        ledger.record("charge", key)
        crash_point("order.charge.after", order=key)
        with done.open("a") as file:
            file.write(key + chr(10))

HASHED = Scenario(
    name="hashed", worker=worker,
    workload=lambda seed: Workload(tuple(Command(f"o{n}") for n in range(9)), fresh=Command("f")),
    oracles=(NoEffectTwice(),), points=("locking",), fresh=FRESH,
)
"""


class _Holds:
    """An oracle that finds nothing."""

    name = "holds"
    promise = "nothing"

    def check(self, evidence: Evidence) -> Finding:
        """Answer."""
        return Finding(OracleStatus.HOLDS)


def _run(folder: Path, source: str, *, fresh: bool, seed: int = 0) -> tuple[int, str, Path]:
    """Run a module; return the exit code, what was printed, and the run's folder."""
    module = folder / "locking.py"
    module.write_text(source.replace("FRESH", str(fresh)), encoding="utf-8")
    command = [sys.executable, "-m", "harness", "run", "--scenarios", str(module), "--jobs", "1"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    done = subprocess.run(
        [
            *command,
            *("--out", str(folder / "runs"), "--seed", str(seed)),
            *("--report", "summary,junit,markdown,html"),
        ],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr, (folder / "runs" / "latest").resolve()


def _record(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(RunFolder(folder).record.read_text(encoding="utf-8"))
    del record["timing"]
    return record


def test_an_id_made_at_import_makes_a_scenario_inconclusive(tmp_path: Path) -> None:
    """A lock that a killed worker owns by such an id is held in forks, and stuck in real life."""
    code, said, folder = _run(tmp_path, NAMED_AT_IMPORT, fresh=False)
    assert code == 3, said
    record = _record(folder)
    assert [row["verdict"] for row in record["experiments"]] == ["held", "held"]
    (scenario,) = record["scenarios"]
    (why,) = scenario["inconclusive"]
    assert "lock.take.after#1=kill is broken (every-command-has-effect: command 'o1'" in why
    assert "held in a fork" in why
    assert [(row["schedule"], row["agrees"]) for row in scenario["fork_sample"]["experiments"]] == [
        ("", True),
        ("lock.take.after#1=kill", False),
    ]
    for output in (said, *(p.read_text("utf-8") for p in _outputs(RunFolder(folder)))):
        assert "see Scenario.fresh" in output
    *_, again = _run(tmp_path, NAMED_AT_IMPORT, fresh=False)
    assert again != folder
    assert _record(again) == record


def _outputs(folder: RunFolder) -> tuple[Path, ...]:
    return folder.junit, folder.summary, folder.report


def test_it_is_broken_where_every_incarnation_is_an_interpreter(tmp_path: Path) -> None:
    """`Scenario.fresh` shows what a restart does to what is made at import."""
    code, said, folder = _run(tmp_path, NAMED_AT_IMPORT, fresh=True)
    assert code == 1, said
    record = _record(folder)
    assert [row["verdict"] for row in record["experiments"]] == ["held", "broken"]
    assert record["scenarios"][0]["fork_sample"]["experiments"] == []
    *_, again = _run(tmp_path, NAMED_AT_IMPORT, fresh=True)
    assert _record(again) == record


@pytest.mark.parametrize("fresh", [False, True])
def test_the_order_of_a_set_comes_from_the_seed(tmp_path: Path, fresh: bool) -> None:
    """Two runs with one seed give one record, though texts are hashed by chance."""
    code, said, folder = _run(tmp_path, IN_THE_ORDER_OF_A_SET, fresh=fresh)
    assert code == 1, said
    *_, again = _run(tmp_path, IN_THE_ORDER_OF_A_SET, fresh=fresh)
    assert again != folder
    assert _record(again) == _record(folder)
    (failure,) = RunFolder(again).failures()
    variables = json.loads(failure.record.read_text("utf-8"))["environment"]["variables"]
    assert variables["PYTHONHASHSEED"].isdecimal()
    orders = {
        experiment["violations"][0]["message"]
        for seed in range(4)
        for experiment in _record(_run(tmp_path, IN_THE_ORDER_OF_A_SET, fresh=fresh, seed=seed)[2])[
            "experiments"
        ]
        if experiment["violations"]
    }
    assert len(orders) > 1


_WARMED: list[int] = []


def _warm(_site: Site) -> None:
    _WARMED.append(os.getpid())


def _look(site: Site) -> None:
    facts = {
        "cwd": os.getcwd(),  # noqa: PTH109 - as text
        "home": os.environ["HOME"],
        "hash": os.environ["PYTHONHASHSEED"],
        "fds": [int(fd) for fd in os.listdir("/proc/self/fd")],  # noqa: PTH208 - as texts
        "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "blocked": [*signal.pthread_sigmask(signal.SIG_BLOCK, ())],
        "warmed": len(_WARMED),
    }
    sys.stdout.write("printed\n")
    (site.worker_dir / f"{site.incarnation}.json").write_text(json.dumps(facts), encoding="utf-8")
    crash_point("facts.write.after")


def _scenario(*, fresh: bool) -> Scenario:
    return Scenario(
        "look",
        _look,
        lambda _: Workload((Command("a"),), Command("b")),
        (_Holds(),),
        warm=_warm,
        fresh=fresh,
    )


def _facts(*, fresh: bool, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    found = []
    with Experiment(_scenario(fresh=fresh)) as x:
        for _ in range(2):
            incarnation = x.start()
            halt = incarnation.run_until("facts.write.after")
            assert halt.hit is not None
            assert incarnation.kill().killed
            assert "printed" in incarnation.output()
            text = (x.worker_dir / f"{incarnation.number}.json").read_text("utf-8")
            found.append(json.loads(text) | {"home": None, "cwd": None})
            seen = json.loads(text)
            assert seen["cwd"] == str(x.worker_dir.parent / "cwd")
            assert seen["home"] == str(x.worker_dir.parent / "home")
    return found


def test_an_interpreter_is_like_a_fork_in_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stops, proofs of death, output, directories and signals are the same; there is no warm-up."""
    forked = _facts(fresh=False, monkeypatch=monkeypatch)
    fresh = _facts(fresh=True, monkeypatch=monkeypatch)
    assert [facts["warmed"] for facts in forked + fresh] == [1, 1, 0, 0]
    assert forked[0]["hash"] == forked[1]["hash"]
    assert len({facts["hash"] for facts in [*forked, *fresh]}) == 3
    for facts in forked + fresh:
        assert facts["interrupt"]
        assert facts["blocked"] == []
    # The trace is the only file that the harness holds open in a worker, beside its streams; one
    # more is the directory that is being listed.
    assert {len(facts["fds"]) for facts in fresh} <= {len(facts["fds"]) for facts in forked}


def test_a_hash_seed_of_the_user_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has set PYTHONHASHSEED wants that one."""
    monkeypatch.setenv("PYTHONHASHSEED", "5")
    for fresh in (False, True):
        with Experiment(_scenario(fresh=fresh)) as x:
            x.start().run_until_quiet()
            facts = json.loads((x.worker_dir / "1.json").read_text("utf-8"))
        assert facts["hash"] == "5"


def test_a_module_that_cannot_be_imported_is_told(tmp_path: Path) -> None:
    """An interpreter that does not come as far as the worker dies with its traceback told."""
    (tmp_path / "breaking.py").write_text(
        "import sys\n"
        "if 'CRASH_HARNESS_ARM' in __import__('os').environ and 'harness.experiment' not in "
        "sys.modules and 'harness.processes.heap' not in sys.modules:\n"
        "    raise RuntimeError('no second time')\n"
        "def worker(site): pass\n",
        encoding="utf-8",
    )
    sys.path.insert(0, str(tmp_path))
    try:
        from breaking import worker  # type: ignore[import-not-found]  # noqa: PLC0415

        result = run_schedule(replace(_scenario(fresh=True), worker=worker), "")
    finally:
        sys.path.remove(str(tmp_path))
    assert result.verdict is Verdict.WRONG_DEATH
    assert "no second time" in result.note
