"""Judge a recorded failure anew: today's oracles, its crash images and history; nothing is run."""

from __future__ import annotations

import re
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from harness.experiment.protocol import judge
from harness.images.run_folder import FailureFolder, RunFolder
from harness.images.workspace import empty_image
from harness.model.errors import UsageError
from harness.model.image import Image
from harness.model.oracle import EndedIncarnation, Evidence
from harness.model.starts_again import STARTS_AGAIN
from harness.model.trace import Death, Hit
from harness.record.failure_schema import read_failure_record

if TYPE_CHECKING:
    from harness.model.result import Verdict, Violation
    from harness.record.failure_schema import FailureRecord
    from harness.scenario import Scenario

_DEATH = re.compile(r"killed by (?P<signal>SIG[A-Z0-9]+)|exited with code (?P<code>-?\d+)")


def judge_record(folder: Path, scenario: Scenario) -> tuple[Verdict, tuple[Violation, ...], str]:
    """Judge a recorded failure.

    Args:
        folder: The failure's folder, with its crash images.
        scenario: Its scenario, as it is today.

    Returns:
        As `harness.experiment.protocol.judge`.

    Raises:
        UsageError: There is no record, it is of another version, or its images are not all there.
    """
    with tempfile.TemporaryDirectory(prefix="recheck-") as scratch:
        return judge(scenario.judges, _evidence(folder, scenario, empty_image(Path(scratch))))


def _evidence(folder: Path, scenario: Scenario, start: Image) -> Evidence:
    record = read_failure_record(folder)
    if record["history_left_out"]:
        raise UsageError(f"{folder}: its history was cut short, so it cannot be judged again")
    names = FailureFolder(folder)
    incarnations = _incarnations(record, names, start)
    struck = len({strike["incarnation"] for strike in record["strikes"]})
    failed = [v["message"] for v in record["violations"] if v["oracle"] == STARTS_AGAIN.name]
    later = incarnations[struck:]
    if len(later) < 2 - bool(failed):
        raise UsageError(
            f"{folder} has {len(incarnations)} incarnations for {struck} strikes; it takes two more"
        )
    recovered, *restarted = later
    after_restart = recovered.after
    fresh_offered = False
    if restarted:
        at_quiet = Image(names.restart_image(restarted[0].number))
        # A worker that ends by itself is at rest when it has ended; only the incarnation after that
        # sees the fresh command.
        fresh_offered = at_quiet.path.is_dir() or len(restarted) > 1 or not failed
        if fresh_offered:
            after_restart = at_quiet if at_quiet.path.is_dir() else restarted[0].after
    return Evidence(
        workload=scenario.workload(record["seed"]),
        struck=tuple(incarnations[:struck]),
        recovered=recovered,
        restarted=restarted[-1] if restarted else recovered,
        after_restart=after_restart,
        survivors=tuple(record["survivors"]),
        failed=failed[0] if failed else "",
        fresh_offered=fresh_offered,
    )


def _incarnations(
    record: FailureRecord, folder: FailureFolder, start: Image
) -> list[EndedIncarnation]:
    before = start
    incarnations = []
    for row in record["incarnations"]:
        number = row["number"]
        after = Image(folder.end_image(number))
        if not after.worker_dir.is_dir():
            raise UsageError(f"no crash image at {after.path}; recheck where the run was made")
        hits = tuple(
            Hit(entry["text"], entry["context"], entry["hits"], entry["stopped"])
            for entry in record["history"]
            if entry["incarnation"] == number and entry["what"] in ("point", "struck")
        )
        incarnations.append(EndedIncarnation(number, hits, _death(row["death"]), before, after))
        before = after
    return incarnations


def _death(text: str) -> Death:
    match = _DEATH.fullmatch(text)
    if match is None:
        raise UsageError(f"the record says {text!r} of a death, neither a signal nor an exit code")
    if match["signal"]:
        return Death(signal.Signals[match["signal"]].value, -1)
    return Death(0, int(match["code"]))


def failures_at(path: Path) -> list[Path]:
    """Return the folders of failures at a path: a failure's own, or all of a run.

    Raises:
        UsageError: There is none.
    """
    if FailureFolder(path).record.exists():
        return [path]
    found = recorded_failures(path)
    if not found:
        raise UsageError(f"no recorded failure at {path}")
    return found


def recorded_failures(path: Path) -> list[Path]:
    """Return the folders of all recorded failures of a run.

    Args:
        path: The run's directory.
    """
    return [folder.path for folder in RunFolder(path).failures() if folder.record.exists()]
