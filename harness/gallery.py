"""The gallery: a committed report of each known-bad worker, the same on every machine.

Which workers it shows, and by which schedule, is kept in ``gallery.json``; one that is new is
searched for the first crash that its oracle catches. Times, places and versions are left out, so a
change of a page is a change of what a report says. Where a point stands in the source, and what
stands around it, is shown and not compared: it changes with every edit above it.
"""

from __future__ import annotations

import difflib
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from harness.catalogue import scan
from harness.errors import HarnessError
from harness.explore.matrix import run_matrix
from harness.outcome import Outcome
from harness.record import alone
from harness.recording.environment import NOWHERE
from harness.recording.failure import Circumstances, failure_record
from harness.recording.masking import Masking
from harness.render.html_failure import failure_page
from harness.render.issue import issue
from harness.schedule import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.explore.executor import Executor
    from harness.failure_record import FailureRecord
    from harness.scenario import Scenario
    from harness.schedule import Schedule

INDEX = "gallery.json"
_SEED = 0
_SHOWN_LINES = 20
_SOURCE = re.compile(
    r'<ol class="source".*?</ol>'  # of a page
    r"|^## The line: .*\Z"  # of the draft of an issue, whose last part it is
    r"|(?<=\.py):[0-9]+",
    re.DOTALL | re.MULTILINE,
)


def shown_in(out: Path) -> tuple[str, ...]:
    """Return the names of the scenarios that a gallery shows; none when there is no gallery.

    Args:
        out: Its directory.
    """
    return tuple(_kept(out / INDEX))


def make_gallery(
    scenarios: Iterable[Scenario], source: str, executor: Executor, out: Path
) -> dict[Path, str]:
    """Make the pages.

    Args:
        scenarios: Scenarios that are pinned broken.
        source: Where they were loaded from.
        executor: Runs them.
        out: Directory of the gallery; nothing is written to it.

    Returns:
        The text of each file.

    Raises:
        HarnessError: A known-bad worker was not caught.
    """
    pages: dict[Path, str] = {}
    schedules = _kept(out / INDEX)
    for scenario in scenarios:
        if scenario.name not in schedules:
            schedules[scenario.name] = str(_search(scenario, executor))
        record = _record(scenario, parse(schedules[scenario.name]), source, executor)
        pages[out / scenario.name / "report.html"] = failure_page(record)
        pages[out / scenario.name / "ISSUE.md"] = issue(record)
    pages[out / INDEX] = json.dumps(schedules, indent=1, sort_keys=True) + "\n"
    return pages


def check_gallery(pages: Mapping[Path, str]) -> list[str]:
    """Compare pages with those that are there, apart from places in the source.

    Returns:
        What is different, a line each.
    """
    found: list[str] = []
    for path, text in pages.items():
        try:
            old = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            found.append(f"{path} is missing")
            continue
        before, now = (_SOURCE.sub("", page) for page in (old, text))
        if before != now:
            found.append(f"{path} is another:")
            lines = difflib.unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=0)
            found.extend(f"  {line}" for line in list(lines)[2 : _SHOWN_LINES + 2])
    return found


def _kept(index: Path) -> dict[str, str]:
    if not index.exists():
        return {}
    kept: dict[str, str] = json.loads(index.read_text(encoding="utf-8"))
    return kept


def _search(scenario: Scenario, executor: Executor) -> Schedule:
    """Find the smallest crash that the pinned oracle catches, with the fewest other facts."""
    (outcome,) = run_matrix([scenario], executor, _tell_nobody, tier="smoke", seed=_SEED)
    caught = [r for r in outcome.results if scenario.pin.oracle in r.oracles]
    if not caught:
        raise HarnessError(f"{scenario.name} was not caught by {scenario.pin.oracle}")
    return min(caught, key=lambda r: (len(r.schedule.moments), len(r.violations))).schedule


def _record(
    scenario: Scenario, schedule: Schedule, source: str, executor: Executor
) -> FailureRecord:
    kept = Path(tempfile.mkdtemp(prefix="gallery-"))
    try:
        (outcome,) = run_matrix(
            [scenario], executor.keeping(kept), _tell_nobody, at=schedule, seed=_SEED
        )
        result = outcome.results[-1]
        if scenario.pin.oracle not in result.oracles:
            raise HarnessError(
                f"{result.experiment_id} was {result.verdict}, not caught by {scenario.pin.oracle}"
            )
        shown = Outcome(scenario, scan(scenario.points), outcome.results, whole=False)
        masking = Masking({}, str(Path.cwd()), "")
        about = Circumstances(source, alone(result), NOWHERE, masking)
        return failure_record(result, shown, kept / result.fingerprint, about)
    finally:
        shutil.rmtree(kept)


def _tell_nobody(_event: object) -> None:
    pass
