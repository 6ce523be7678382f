"""The open failures: a folder of links to the newest record of each, until a run shows it fixed.

``<out>/failures/<fingerprint>`` links into the newest run that saw the failure. A run of the same
scenario, schedule and seed in which it is gone removes the link, and the folder that it points to.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from harness.images.deletion import remove_tree
from harness.images.run_folder import AllRuns, RunFolder
from harness.model.errors import UsageError
from harness.model.result import Verdict
from harness.record.failure_schema import read_failure_record

if TYPE_CHECKING:
    from pathlib import Path

    from harness.record.outcome import ScenarioOutcome


def keep_open(run: Path, outcomes: tuple[ScenarioOutcome, ...]) -> None:
    """Bring the folder of open failures up to date with a run.

    Args:
        run: The run's directory, with its failures.
        outcomes: What came out.
    """
    runs = AllRuns(run.parent)
    home = runs.open_failures
    results = [result for outcome in outcomes for result in outcome.results]
    broken = {result.fingerprint for result in results if result.fingerprint}
    if home.is_dir():
        judged = {
            (result.scenario, str(result.schedule), result.seed)
            for result in results
            if result.verdict in (Verdict.HELD, Verdict.BROKEN)
        }
        for link in sorted(home.iterdir()):
            if not link.is_symlink() or link.name in broken:
                continue
            if not link.exists():
                link.unlink()
            elif _experiment(link) in judged:
                target = link.resolve()
                if _is_failure_of_a_run(target, run.parent.resolve()):
                    remove_tree(target)
                link.unlink()
    if broken:
        home.mkdir(exist_ok=True)
    for fingerprint in sorted(broken):
        fresh = home / f".{fingerprint}.{os.getpid()}"
        fresh.symlink_to(runs.link_target(RunFolder(run), fingerprint))
        fresh.replace(home / fingerprint)


def _is_failure_of_a_run(target: Path, runs: Path) -> bool:
    """Tell whether a folder is one that links are made to; others are not ours to delete."""
    run = target.parent.parent
    return run.parent == runs and target.parent == RunFolder(run).kept


def _experiment(link: Path) -> tuple[str, str, int] | None:
    """Return which experiment an open failure is, or None when its record cannot be read."""
    try:
        record = read_failure_record(link)
    except UsageError:
        return None
    return record["scenario"], record["schedule"], record["seed"]
