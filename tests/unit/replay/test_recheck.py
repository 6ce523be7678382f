"""A recorded failure that is judged again: what the oracles are shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from harness_doubles import idle_worker, idle_workload

from benchmarks.sample_records import failure_record
from harness.images.run_folder import FAILURE
from harness.model.errors import UsageError
from harness.model.oracle import Evidence, Finding, broken_if
from harness.model.result import Verdict
from harness.replay.recheck import judge_record
from harness.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Looking:
    """An oracle that looks at what every incarnation began with, as a worker's books are read."""

    name = "looking"
    promise = "what an incarnation begins with can be read"

    def __init__(self) -> None:
        self.before: list[list[str]] = []

    def check(self, evidence: Evidence) -> Finding:
        """List the files of each; there is a note from the end of the first on."""

        def names(directory: Path) -> list[str]:
            return sorted(path.name for path in directory.iterdir())

        for each in evidence.incarnations:
            self.before.append(each.before.read(names, each.before.worker_dir))
            each.before.read(names, each.before.world_dir)
        return broken_if(f"{n}" for n, found in enumerate(self.before, 1) if n > 1 and not found)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give the folder of a failure of two strikes, with its images."""
    record = failure_record()
    last = record["incarnations"][-1]
    record["incarnations"].append({**last, "number": last["number"] + 1})
    (tmp_path / FAILURE).write_text(json.dumps(record), encoding="utf-8")
    for row in record["incarnations"]:
        for part in ("worker", "world"):
            (tmp_path / "images" / f"{row['number']}-end" / part).mkdir(parents=True)
        (tmp_path / "images" / f"{row['number']}-end" / "worker" / "note.txt").touch()
    return tmp_path


def scenario(oracle: Looking) -> Scenario:
    """Return a scenario with this oracle."""
    return Scenario("orders", idle_worker, idle_workload, (oracle,))


def test_the_first_incarnation_began_with_nothing(folder: Path) -> None:
    """It was read from an image that nobody wrote, and an oracle that looked there failed."""
    oracle = Looking()
    files = sorted(folder.rglob("*"))
    verdict, violations, note = judge_record(folder, scenario(oracle))
    assert (verdict, violations, note) == (Verdict.HELD, (), "")
    assert oracle.before == [[], ["note.txt"], ["note.txt"], ["note.txt"]]
    assert sorted(folder.rglob("*")) == files, "a recorded failure is not written to"


def remove_an_image(folder: Path) -> None:
    """Take away an image, as a record has none that was copied alone."""
    (folder / "images" / "2-end").rename(folder / "elsewhere")


def cut_the_history(folder: Path) -> None:
    """Say that the history is not whole."""
    record = {**failure_record(), "history_left_out": 3}
    (folder / FAILURE).write_text(json.dumps(record), encoding="utf-8")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (remove_an_image, "no crash image at .*2-end"),
        (cut_the_history, "its history was cut short"),
    ],
)
def test_a_failure_that_is_not_whole_is_not_judged(
    folder: Path, spoil: Callable[[Path], None], message: str
) -> None:
    """A verdict by half of the evidence could be wrong."""
    spoil(folder)
    with pytest.raises(UsageError, match=message):
        judge_record(folder, scenario(Looking()))
