"""The gallery: a report of each family of known-bad workers, the same on every machine.

Which families there are, which worker stands for each, and at which schedule it is shown, is kept
in ``gallery.json``, with a digest of each file of its report; one that is new is searched for the
first crash that its oracle catches. Times, places and versions are left out, so a change of a page
is a change of what a report says. Where a point stands in the source, and what stands around it, is
shown and not compared: it changes with every edit above it.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

from harness.explore.session import Session, SessionRequest
from harness.images.run_folder import FAILURE, FailureFolder, control_image
from harness.model.canonical_json import one_item_a_line
from harness.model.errors import HarnessError
from harness.model.schedule import parse
from harness.record.environment import NOWHERE
from harness.record.masking import StableMasking
from harness.record.minimal import minimal_row, unshrunk_row
from harness.record.read_json import read_json
from harness.record.typed_dicts import as_declared
from harness.record.write_failure import FailureContext, failure_record
from harness.report.gallery_index import Entry, gallery_index
from harness.report.html_failure import failure_page
from harness.report.issue import issue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.model.canonical_json import Json
    from harness.model.result import ExperimentResult
    from harness.model.schedule import Schedule
    from harness.record.failure_schema import FailureRecord
    from harness.record.outcome import ScenarioOutcome
    from harness.scenario import Scenario

INDEX = "gallery.json"
OVERVIEW = "README.md"
_SEED = 0
_SHOWN_LINES = 20
_SOURCE = re.compile(
    r'<ol class="source".*?</ol>'  # of a page
    r"|^## The line: .*\Z"  # of the draft of an issue, whose last part it is
    r"|(?<=\.py):[0-9]+",
    re.DOTALL | re.MULTILINE,
)


class Family(TypedDict):
    """A family of known-bad workers, and how it is shown.

    `fault` is what is wrong with them, for the overview; a report has to find it out. `shows` is
    the scenario that stands for the family, `at` its schedule, `others` are the other scenarios.
    `varies` names what this worker saves that differs from run to run, by its keys in JSON.
    `digests` has the digest of each file of its report, by the file's name.
    """

    fault: str
    shows: str
    at: str
    others: list[str]
    varies: list[str]
    digests: dict[str, str]


def families(out: Path) -> dict[str, Family]:
    """Return the families that a gallery shows, by name; none when there is no gallery.

    Args:
        out: Its directory.

    Raises:
        UsageError: Its index is not well formed.
    """
    index = out / INDEX
    if not index.exists():
        return {}
    kept = as_declared(read_json(index, "index of a gallery"), dict[str, object], str(index))
    return {
        name: as_declared(family, Family, f"{index}: family {name!r}")
        for name, family in kept.items()
    }


def make_gallery(
    shown: Mapping[str, Family],
    scenarios: Mapping[str, Scenario],
    source: str,
    root: Path,
    out: Path,
) -> dict[Path, str]:
    """Make the files of a gallery.

    Args:
        shown: The families; one without a schedule is searched for one.
        scenarios: At least the scenarios that stand for them, by name.
        source: Where they were loaded from.
        root: Directory for the workspaces.
        out: Directory of the gallery; nothing is written to it.

    Returns:
        The text of each file.

    Raises:
        HarnessError: A known-bad worker was not caught.
    """
    found = dict(shown)
    for name, family in shown.items():
        if not family["at"]:
            schedule = _search(scenarios[family["shows"]], root)
            found[name] = {**family, "at": str(schedule)}
    records = _records(found, scenarios, source, root)
    pages: dict[Path, str] = {}
    for name, record in records.items():
        pages[FailureFolder(out / name).report] = failure_page(record)
        pages[FailureFolder(out / name).issue] = issue(record)
        pages[FailureFolder(out / name).record] = one_item_a_line(cast("Json", record))
    entries = [
        Entry(name, found[name]["fault"], tuple(found[name]["others"]), record)
        for name, record in sorted(records.items())
    ]
    pages[out / OVERVIEW] = gallery_index(entries)
    for name, family in found.items():
        digests = {p.name: _digest(p, text) for p, text in pages.items() if p.parent == out / name}
        found[name] = {**family, "digests": dict(sorted(digests.items()))}
    pages[out / INDEX] = json.dumps(found, indent=1, sort_keys=True) + "\n"
    return pages


def check_gallery(pages: Mapping[Path, str], out: Path) -> list[str]:
    """Compare a gallery with one that is there, apart from places in the source.

    A file of a report need not be there: its digest in the index stands for it.

    Args:
        pages: What there should be.
        out: Directory of the gallery.

    Returns:
        What is different, a line each.
    """
    found: list[str] = []
    kept = families(out)
    for path, text in pages.items():
        family = kept.get(path.parent.name)
        digest = family["digests"].get(path.name, "") if family is not None else ""
        if path.exists():
            before, now = (_compared(path, page) for page in (path.read_text("utf-8"), text))
            if before != now:
                found.append(f"{path} is another:")
                old, new = before.splitlines(), now.splitlines()
                lines = difflib.unified_diff(old, new, lineterm="", n=0)
                found.extend(f"  {line}" for line in list(lines)[2 : _SHOWN_LINES + 2])
        elif path.parent == out:
            found.append(f"{path} is missing")
        elif digest and digest != _digest(path, text):
            found.append(f"{path} is another, by its digest in {INDEX}")
        elif not digest:
            found.append(f"{path} has no digest in {INDEX}")
    found.extend(
        f"{path} belongs to no family"
        for path in sorted(out.rglob("*"))
        if path.is_file() and path not in pages
    )
    return found


def _digest(path: Path, text: str) -> str:
    return hashlib.sha256(_compared(path, text).encode()).hexdigest()


def _compared(path: Path, text: str) -> str:
    if path.name == FAILURE:
        with suppress(ValueError, KeyError, TypeError):  # what is not a record differs as it is
            record = json.loads(text)
            for strike in record["strikes"]:
                strike["line"], strike["lines"] = 0, []
            text = one_item_a_line(record)
    return _SOURCE.sub("", text)


def _search(scenario: Scenario, root: Path) -> Schedule:
    """Find the smallest crash that the pinned oracle catches, with the fewest other facts."""
    with Session(SessionRequest((scenario,), root, seed=_SEED, jobs=_jobs())) as session:
        session.explore()
        (outcome,) = session.outcomes
    caught = [r for r in outcome.results if scenario.pin.oracle in r.oracles]
    if not caught:
        raise HarnessError(f"{scenario.name} was not caught by {scenario.pin.oracle}")
    return min(caught, key=lambda r: (len(r.schedule.moments), len(r.violations))).schedule


def _records(
    shown: Mapping[str, Family], scenarios: Mapping[str, Scenario], source: str, root: Path
) -> dict[str, FailureRecord]:
    """Run what is shown, all at once, and record it."""
    chosen = {family["shows"]: parse(family["at"]) for family in shown.values()}
    with tempfile.TemporaryDirectory(prefix="gallery-") as kept:
        request = SessionRequest(
            tuple(scenarios[name] for name in chosen),
            root,
            out=Path(kept),
            at=chosen,
            seed=_SEED,
            jobs=_jobs(),
        )
        with Session(request) as session:
            session.explore()
            session.shrink()
            return {
                name: _record(session, outcome, source, family["varies"])
                for (name, family), outcome in zip(shown.items(), session.outcomes, strict=True)
            }


def _jobs() -> int:
    return len(os.sched_getaffinity(0))


def _caught(outcome: ScenarioOutcome) -> ExperimentResult:
    result = outcome.results[-1]
    if outcome.scenario.pin.oracle not in result.oracles:
        raise HarnessError(
            f"{result.experiment_id} was {result.verdict}, "
            f"not caught by {outcome.scenario.pin.oracle}"
        )
    return result


def _record(
    session: Session, outcome: ScenarioOutcome, source: str, varies: Sequence[str]
) -> FailureRecord:
    result = _caught(outcome)
    shorter = session.minimal.get(result.fingerprint)
    about = FailureContext(
        source,
        minimal_row(shorter) if shorter else unshrunk_row(result),
        NOWHERE,
        StableMasking(varies, str(Path.cwd())),
        control_image(session.kept, outcome.scenario.name),
    )
    return failure_record(result, outcome, session.kept / result.fingerprint, about)


def new_families(names: Iterable[str], known: Sequence[str]) -> dict[str, Family]:
    """Return a family for each scenario that none has yet, named like it.

    Args:
        names: Names of scenarios.
        known: Those that are shown already.
    """
    return {
        name: {"fault": "", "shows": name, "at": "", "others": [], "varies": [], "digests": {}}
        for name in names
        if name not in known
    }
