"""Several seeds: one session after the other, until one is cut short."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from harness.explore import several_seeds
from harness.explore.run_handler import NOBODY
from harness.explore.session_request import SessionRequest, SessionResult
from harness.explore.several_seeds import run_seeds
from harness.record.interruption import exit_code_of_runs
from harness.record.outcome import ExitCode
from harness.report.seeds_summary import print_seeds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


@pytest.mark.parametrize(
    ("codes", "ran", "code"),
    [
        ({}, [5, 1, 2], ExitCode.AS_PINNED),
        ({1: ExitCode.INCONCLUSIVE}, [5, 1, 2], ExitCode.INCONCLUSIVE),
        ({5: ExitCode.INCONCLUSIVE, 2: ExitCode.BROKEN}, [5, 1, 2], ExitCode.BROKEN),
        ({1: ExitCode.INTERRUPTED}, [5, 1], ExitCode.INTERRUPTED),
        ({5: ExitCode.BROKEN, 1: ExitCode.TERMINATED}, [5, 1], ExitCode.TERMINATED),
        ({5: ExitCode.HARNESS}, [5], ExitCode.HARNESS),
    ],
)
def test_seeds_run_in_order_until_one_is_cut_short(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    codes: Mapping[int, ExitCode],
    ran: Sequence[int],
    code: ExitCode,
) -> None:
    """A red seed hides nothing of those after it; a signal or a fault of the harness ends all."""

    def session(request: SessionRequest, *_arguments: object) -> SessionResult:
        return SessionResult((), codes.get(request.seed, ExitCode.AS_PINNED), None, None)

    monkeypatch.setattr(several_seeds, "run_session", session)
    done = dict(run_seeds(SessionRequest((), tmp_path), (5, 1, 2), lambda: NOBODY))
    assert list(done) == ran
    assert exit_code_of_runs([result.exit_code for result in done.values()]) is code


def test_the_end_names_every_seed_that_was_not_as_pinned() -> None:
    """Whoever reads only the end knows which seeds to look at, and that some were not run."""
    console = Console(file=io.StringIO(), width=80)
    codes = {
        1: ExitCode.AS_PINNED,
        2: ExitCode.BROKEN,
        3: ExitCode.INCONCLUSIVE,
        4: ExitCode.BROKEN,
        5: ExitCode.INTERRUPTED,
    }
    print_seeds(console, range(1, 40), codes)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines() == [
        "",
        "seeds: all as pinned under 1 of 39",
        "  NOT as pinned: 2, 4",
        "  inconclusive: 3",
        "  cut short: 5",
        f"  not run: {', '.join(map(str, range(6, 26)))} and 14 more",
    ]
