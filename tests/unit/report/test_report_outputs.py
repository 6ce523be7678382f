"""The registry of outputs: which there are, what is wanted, and one that fails."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rendered import of_run
from rich.console import Console

from benchmarks.sample_records import run_record
from harness.model.errors import UnknownNameError
from harness.model.events import RunFinished
from harness.report.output import Output, Surroundings
from harness.report.outputs import OF_A_RECORD, OF_A_RUN, OUTPUTS, Outputs, chosen

if TYPE_CHECKING:
    from harness.model.events import Event
    from harness.report.recorded_run import RecordedRun

ROOT = Path(__file__).parents[3]
NOWHERE = Surroundings(Console(file=io.StringIO()), lambda _line: None, {})


class Listening(Output):
    """An output that keeps what it is asked, and fails where it is told to."""

    def __init__(self, fails_at: str = "") -> None:
        self.asked: list[str] = []
        self._fails_at = fails_at

    def start(self, directory: Path | None) -> None:
        """Begin."""
        del directory
        self._ask("start")

    def handle(self, event: Event) -> None:
        """Take notice."""
        self._ask(type(event).__name__)

    def close(self, run: RecordedRun | None) -> None:
        """End."""
        self._ask("close" if run is not None else "let go")

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if what == self._fails_at:
            raise OSError(28, "No space left on device")


@pytest.mark.parametrize("fails_at", ["start", "RunFinished", "close"])
def test_one_that_fails_stops_neither_the_run_nor_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: str
) -> None:
    """A full disk under one report is said in the end, when everything else has been written."""
    bad, good = Listening(fails_at), Listening()
    monkeypatch.setitem(OUTPUTS, "junit", lambda _surroundings: bad)
    monkeypatch.setitem(OUTPUTS, "markdown", lambda _surroundings: good)
    outputs = Outputs(("junit", "markdown"), NOWHERE)
    outputs.start(tmp_path)
    outputs.handle(RunFinished(1.0))
    with pytest.raises(OSError, match="No space left"):
        outputs.close(run_record())
    assert good.asked == ["start", "RunFinished", "close"]
    assert bad.asked[-2:] == [fails_at, "let go"], "what it holds is let go of"


def test_names_are_told_apart() -> None:
    """Unknown names are errors with the nearest one; `none` is none."""
    assert chosen("html, junit,html", {}) == ("html", "junit")
    assert chosen("none", {}) == ()
    assert chosen(None, {}) == ("html",)
    assert chosen(None, {"GITHUB_ACTIONS": "true"}) == ("html", "markdown", "annotations")
    with pytest.raises(UnknownNameError, match="'markdown'"):
        chosen("html,markdwn", {})


def test_the_documentation_names_every_output() -> None:
    """An output that nobody knows of is none; nor is one documented that is not there."""
    text = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")
    table = text.split("## Outputs")[1].split("\n## ")[0]
    named = {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")}
    assert named | {*OF_A_RUN, *OF_A_RECORD} == set(OUTPUTS)


@pytest.mark.parametrize("name", of_run(run_record(), None))
def test_an_interrupted_run_says_so(name: str) -> None:
    """Each output of a run says by what it was interrupted, and none calls it green."""
    record = run_record()
    record["interrupted"] = "interrupted by SIGINT (Ctrl-C)"
    record["totals"]["exit_code"] = 130
    for row in record["scenarios"]:
        row["finished"] = row["as_pinned"] = False
        row["mismatch"], row["inconclusive"] = "", []
    text = of_run(record, None)[name]
    assert "interrupted by SIGINT (Ctrl-C)" in text
    assert "✓ as pinned" not in text
    assert "✅" not in text
    assert "NOT as pinned" not in text, "nothing is known against it"
