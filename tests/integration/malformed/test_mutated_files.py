"""Files that are other than they should be: each reader gives a value, or an error of ours.

Drawn from right ones, in this process. What the command makes of such files is in
tests/acceptance/test_malformed_files.py.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from contextlib import suppress
from dataclasses import fields, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from harness_doubles import idle_worker, scenario
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import TEXTS, damaged_bytes, damaged_json, values
from rich.console import Console

from benchmarks.sample_records import SCHEDULE, failure_record, run_before, run_record
from harness.explore.exploration import Exploration
from harness.explore.scenario_files import load
from harness.gallery.comparison import compare_gallery
from harness.gallery.data import GalleryFolder, read_gallery
from harness.gallery.making import MadeGallery, write_pages
from harness.images.run_folder import FailureFolder
from harness.model.errors import UsageError
from harness.model.schedule import parse
from harness.model.workload import Command, Workload
from harness.moments.catalogue import scan
from harness.oracles.effects import NoEffectTwice
from harness.record.open_failures import keep_open
from harness.record.pins import read_pins
from harness.replay.recheck import failures_at, judge_record
from harness.replay.reproduce import named_failure
from harness.report.output import Surroundings
from harness.report.outputs import OUTPUTS, Outputs
from harness.scenario import HOLDS, Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mutations import Node

DRAWN = int(os.environ.get("CRASH_HARNESS_DRAWN_FILES", "40"))
"""How many files of each kind are drawn."""

FUZZ = settings(
    max_examples=DRAWN,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)

FAILURE = failure_record()
RUN = run_record()
SCENARIO = scenario("orders")
numbers = count()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder; every example has one of its own in it."""
    return tmp_path_factory.mktemp("drawn")


def everything_below(folder: Path) -> dict[str, bytes]:
    """Return what every file below a folder holds, by its path."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def new_runs(place: Path) -> Path:
    """Make a directory of runs, with one run and the one before it, and a failure with images."""
    runs = place / str(next(numbers)) / "runs"
    run = runs / "run"
    failure = run / "failures" / FAILURE["fingerprint"]
    for row in FAILURE["incarnations"]:
        for part in ("worker", "world"):
            (FailureFolder(failure).end_image(row["number"]) / part).mkdir(parents=True)
    (run / "results.json").write_text(json.dumps(RUN))
    (failure / "failure.json").write_text(json.dumps(FAILURE))
    before = runs / Path(RUN["timing"]["previous"] or "before").name
    before.mkdir(exist_ok=True)
    (before / "results.json").write_text(json.dumps(run_before()))
    return runs


def all_outputs() -> Outputs:
    """Return every output, with a terminal that nobody sees."""
    console = Console(file=io.StringIO(), width=100)
    return Outputs(OUTPUTS, Surroundings(console, lambda _line: None, {}))


def try_every_reader(runs: Path) -> None:
    """Have everything read that reads a run or a failure; only errors of ours may come out."""
    run = runs / "run"
    failure = run / "failures" / FAILURE["fingerprint"]
    calls: list[Callable[[], object]] = [
        lambda: all_outputs().render_again(run),
        lambda: all_outputs().render_again(failure),
        lambda: named_failure(str(failure), "scenarios", 0),
        lambda: [judge_record(folder, SCENARIO) for folder in failures_at(run)],
    ]
    for call in calls:
        with suppress(UsageError):
            call()
    link = runs / "failures" / FAILURE["fingerprint"]
    link.parent.mkdir()
    link.symlink_to(failure)
    with suppress(UsageError):
        keep_open(run, ())


@FUZZ
@given(damaged_json(cast("Node", RUN)))
def test_a_record_of_a_run(place: Path, data: bytes) -> None:
    """`report`, `recheck` and the next run read the record of a run that somebody has handed on."""
    runs = new_runs(place)
    outside = everything_below(runs / "before")
    (runs / "run" / "results.json").write_bytes(data)
    try_every_reader(runs)
    assert {path.name for path in runs.parent.iterdir()} == {"runs"}
    assert everything_below(runs / "before") == outside
    shutil.rmtree(runs.parent)


@FUZZ
@given(damaged_json(cast("Node", FAILURE)))
def test_a_record_of_a_failure(place: Path, data: bytes) -> None:
    """`report`, `repro` and `recheck` read the record of a failure that somebody has handed on."""
    runs = new_runs(place)
    (runs / "run" / "failures" / FAILURE["fingerprint"] / "failure.json").write_bytes(data)
    try_every_reader(runs)
    assert {path.name for path in runs.parent.iterdir()} == {"runs"}
    shutil.rmtree(runs.parent)


PINS = """
# Known failures.
[[pin]]
scenario = "orders"
schedule = "order.charge.after[command=c2]#1=kill / order.scan.before#1=kill"
reason = "the provider's idempotency keys come with version 3"
date = 2026-11-30

[[pin]]
fingerprint = "0123456789abcdef"
reason = '''waits for
the next release'''
date = 2026-11-30
"""


@FUZZ
@given(damaged_bytes(PINS))
def test_a_pins_file(place: Path, data: bytes) -> None:
    """The pins file is written by hand, and read by every run."""
    file = place / "crash-harness.pins.toml"
    file.write_bytes(data)
    with suppress(UsageError):
        pins = read_pins(file)
        pins.check({"orders": scan(("shop_of_pins",))})


@pytest.fixture(scope="module", autouse=True)
def shop_of_pins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Put a module with two points where it is found."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop_of_pins.py").write_text(
        "crash_point('order.charge.after', command=1)\ncrash_point('order.scan.before')\n"
    )
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))


GALLERY: Node = {
    "sample": "charges",
    "families": {
        name: {
            "fault": "charges twice",
            "shows": "orders",
            "at": "order.charge.after#1=kill",
            "seed": 0,
            "others": ["bad-orders"],
            "varies": [],
            "digests": {"failure.json": "0" * 64, "report.html": "1" * 64},
        }
        for name in ("charges", "orders")
    },
}


@FUZZ
@given(damaged_json(GALLERY))
def test_the_index_of_a_gallery(place: Path, data: bytes) -> None:
    """Its families name the folders that their reports are written to."""
    home = place / str(next(numbers))
    folder = GalleryFolder(home / "gallery")
    folder.path.mkdir(parents=True)
    folder.index.write_bytes(data)
    with suppress(UsageError):
        kept = read_gallery(folder)
        report = dict.fromkeys(("failure.json", "report.html", "ISSUE.md"), "{}")
        made = MadeGallery(kept, dict.fromkeys(kept["families"], report), "")
        write_pages(made, folder.pages)
        if kept["families"]:
            compare_gallery(made, kept, folder)
    assert {path.name for path in home.iterdir()} == {"gallery"}
    assert {path.name for path in folder.path.iterdir()} <= {"gallery.json", "pages"}
    shutil.rmtree(home)


SCENARIOS = """
from harness import Command, EveryCommandHasEffect, NoEffectTwice, Scenario, Workload, broken_by

def run(site):
    for order in site.offered:
        pass

def workload(seed):
    return Workload((Command("o1", {"n": seed}), Command("o2")), fresh=Command("o3"))

ORDERS = Scenario(
    name="orders",
    worker=run,
    workload=workload,
    oracles=(NoEffectTwice(), EveryCommandHasEffect("charge")),
    points=("shop_of_pins",),
    strike=("order.scan.before",),
    deadline_s=2.5,
)
BAD = [
    Scenario("bad-orders", run, workload, (NoEffectTwice(),), pin=broken_by("no-effect-twice")),
]
"""


@FUZZ
@given(damaged_bytes(SCENARIOS))
def test_a_scenario_file(place: Path, data: bytes) -> None:
    """A scenario file is a program, and is read by being imported."""
    file = place / f"drawn_scenarios_{next(numbers)}.py"
    file.write_bytes(data)
    path, modules = list(sys.path), set(sys.modules)
    try:
        with suppress(UsageError):
            for each in load(file).values():
                Exploration(each, "smoke", 0)
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            del sys.modules[name]
        file.unlink()


FIELDS = [field.name for field in fields(Scenario)]
WRONG = st.one_of(
    values,
    st.sampled_from(
        [
            float("nan"),
            float("inf"),
            0,
            -1,
            (),
            (1,),
            ("a",),
            (None,),
            "no.such.before",
            b"bytes",
            object(),
            object,
            idle_worker,
            (idle_worker,),
            NoEffectTwice(),
            (NoEffectTwice,),
            (NoEffectTwice(), NoEffectTwice()),
            HOLDS,
            Ellipsis,
        ]
    ),
)


@FUZZ
@given(st.dictionaries(st.sampled_from(FIELDS), WRONG, min_size=1, max_size=2))
def test_the_fields_of_a_scenario(wrong: dict[str, object]) -> None:
    """What is given to `Scenario` is refused at once, with a sentence, or can be run."""
    with suppress(UsageError):
        made = replace(SCENARIO, **wrong)  # type: ignore[arg-type]
        Exploration(made, "smoke", 0)
        assert 0 < made.deadline_s < float("inf")
        assert all(oracle.name and callable(oracle.check) for oracle in made.judges)
        assert callable(made.worker)
        assert callable(made.warm)


WORKLOADS = st.one_of(
    WRONG,
    st.builds(Workload, WRONG, fresh=WRONG),
    st.builds(
        lambda name, body, **more: Workload((Command(name, body),), Command("fresh"), **more),
        WRONG,
        WRONG,
        lost=WRONG,
    ),
)


@FUZZ
@given(WORKLOADS)
def test_what_a_workload_gives(given_: object) -> None:
    """A workload is the user's, and is looked at before it goes to a lane and to a worker."""
    made = replace(SCENARIO, workload=lambda _seed: given_)  # type: ignore[arg-type,return-value]
    with suppress(UsageError):
        drawn = made.drawn_workload(0)
        assert all(isinstance(command.command_id, str) for command in drawn.commands)
        json.dumps([command.body for command in (*drawn.commands, drawn.fresh)], allow_nan=False)


@FUZZ
@given(
    st.one_of(
        st.sampled_from(TEXTS),
        st.text(),
        damaged_bytes(SCHEDULE).map(lambda data: data.decode("utf-8", "replace")),
    )
)
def test_a_schedule(text: str) -> None:
    """A schedule is typed by hand, and stands in records and pins."""
    with suppress(UsageError):
        assert parse(str(parse(text))) == parse(text)
