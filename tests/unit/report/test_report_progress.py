"""How far a run is: a bar on a terminal, lines where there is none."""

from __future__ import annotations

import io

from rich.console import Console

from harness.model.events import (
    ExperimentFinished,
    Planned,
    RunFinished,
    RunStarted,
    ShorterTried,
    ShrinkingStarted,
)
from harness.model.result import ExperimentResult, Verdict
from harness.model.schedule import CONTROL
from harness.report.output import Surroundings
from harness.report.progress import ProgressBar


def finished(verdict: Verdict) -> ExperimentFinished:
    """Return the end of an experiment."""
    return ExperimentFinished(
        ExperimentResult(
            scenario="orders",
            schedule=CONTROL,
            seed=0,
            verdict=verdict,
            violations=(),
            fired=(),
            note="",
            incarnations=(),
            survivors=(),
        )
    )


def shown(*, terminal: bool) -> str:
    """Show a run of 250 experiments, the last 60 of them broken."""
    console = Console(file=io.StringIO(), force_terminal=terminal, width=100, highlight=False)
    bar = ProgressBar(Surroundings(console, print, {}))
    bar.start(None)
    bar.handle(RunStarted(("orders",), "smoke", 7, 2))
    bar.handle(Planned(150))
    bar.handle(Planned(100))
    for number in range(250):
        bar.handle(finished(Verdict.HELD if number < 190 else Verdict.BROKEN))
    bar.handle(ShrinkingStarted(2, 24))
    for _ in range(3):
        bar.handle(ShorterTried(finished(Verdict.NOT_FIRED).result))
    bar.handle(RunFinished(1.0))
    bar.close(None)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_log_gets_a_line_now_and_then() -> None:
    """In CI a long run is seen to go on; a log gets lines and no escapes."""
    assert shown(terminal=False).splitlines() == [
        "smoke: 1 scenario, seed 7, 2 lanes",
        "100 of 250 so far: 100 held",
        "200 of 250 so far: 10 broken, 190 held",
        "shrinking 2 failures: at most 24 experiments",
    ]


def test_a_terminal_gets_a_bar() -> None:
    """A bar shows how many of how many are done, and what they came to."""
    text = shown(terminal=True)
    assert "250/250" in text
    assert "60 broken, 190 held" in text
    assert "so far" not in text
    assert "3/24" in text, "shrinking moves the bar"
    assert "3 not_fired" in text
