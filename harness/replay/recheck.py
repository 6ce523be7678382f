"""Judge a recorded failure anew: today's oracles, its crash images and history; nothing is run."""

from __future__ import annotations

import os
import re
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from harness.experiment.judging import judge
from harness.images.run_folder import FailureFolder, RunFolder
from harness.images.workspace import empty_image
from harness.model.errors import UnknownNameError, UsageError
from harness.model.image import Image
from harness.model.oracle import EndedIncarnation, Evidence
from harness.model.regular_file import shown_path
from harness.model.starts_again import STARTS_AGAIN
from harness.model.trace import Death, Hit
from harness.record.failure_schema import read_failure_record

if TYPE_CHECKING:
    from harness.model.result import Verdict, Violation
    from harness.record.failure_schema import FailureRecord
    from harness.scenario import Scenario

_DEATH = re.compile(
    r"killed by (?P<signal>SIG[A-Z0-9]+(?:\+[0-9]{1,2})?)|exited with code (?P<code>-?[0-9]{1,9})"
)


def judge_record(folder: Path, scenario: Scenario) -> tuple[Verdict, tuple[Violation, ...], str]:
    """Judge a recorded failure.

    Args:
        folder: The failure's folder, with its crash images.
        scenario: Its scenario, as it is today.

    Returns:
        As `harness.experiment.judging.judge`.

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
        workload=scenario.drawn_workload(record["seed"]),
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
        return Death(_signal_number(match["signal"]), -1)
    return Death(0, int(match["code"]))


def _signal_number(name: str) -> int:
    """Return the number of a signal as `Death` names it."""
    base, _, above = name.partition("+")
    if base not in signal.Signals.__members__:
        raise UnknownNameError("signal", name, signal.Signals.__members__)
    return signal.Signals[base].value + int(above or 0)


def failures_at(path: Path) -> list[Path]:
    """Return the folders of failures at a path: a failure's own, or all of a run.

    Raises:
        UsageError: There is none.
    """
    if os.path.lexists(FailureFolder(path).record):
        return [path]
    found = recorded_failures(path)
    if not found:
        raise UsageError(f"no recorded failure at {shown_path(path)}")
    return found


def recorded_failures(path: Path) -> list[Path]:
    """Return the folders of all recorded failures of a run.

    Args:
        path: The run's directory.

    Raises:
        UsageError: It cannot be looked at.
    """
    try:
        folders = list(RunFolder(path).failures())
    except OSError as error:
        raise UsageError(f"no recorded failure at {shown_path(path)}: {error.strerror}") from error
    return [folder.path for folder in folders if os.path.lexists(folder.record)]
