"""The reports of a gallery, made anew: every family is run at its schedule and recorded.

A family that has no schedule yet is searched for the first crash that its oracle catches.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from harness.explore.session import Session
from harness.explore.session_request import SessionRequest
from harness.gallery.data import Family, Gallery, digest_of_report, index_text
from harness.images.run_folder import FailureFolder, control_image
from harness.model.canonical_json import one_item_a_line
from harness.model.errors import HarnessError
from harness.model.schedule import parse
from harness.record.environment import NOWHERE
from harness.record.masking import StableMasking
from harness.record.minimal import minimal_row, unshrunk_row
from harness.record.write_failure import FailureContext, failure_record
from harness.report.gallery_index import Entry, gallery_index
from harness.report.html_failure import failure_page
from harness.report.issue import issue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.gallery.data import GalleryFolder
    from harness.model.canonical_json import Json
    from harness.model.result import ExperimentResult
    from harness.record.failure_schema import FailureRecord
    from harness.record.outcome import ScenarioOutcome
    from harness.scenario import Scenario


@dataclass(frozen=True, slots=True)
class MadeGallery:
    """A gallery that was made, and is not written down yet.

    Attributes:
        data: Its families, with the digests of the reports.
        reports: Of each family, the text of each file of its report, by the file's name.
        overview: The overview.
    """

    data: Gallery
    reports: dict[str, dict[str, str]]
    overview: str


def make_gallery(
    gallery: Gallery, scenarios: Mapping[str, Scenario], source: str, root: Path
) -> MadeGallery:
    """Make the reports of a gallery.

    Args:
        gallery: The families; one without a schedule is searched for one.
        scenarios: At least the scenarios that stand for them, by name.
        source: Where they were loaded from.
        root: Directory for the workspaces.

    Raises:
        HarnessError: A known-bad worker was not caught.
    """
    families = {
        name: family if family["at"] else _with_schedule(family, scenarios, root)
        for name, family in gallery["families"].items()
    }
    records = _records(families, scenarios, source, root)
    reports = {name: report_files(record) for name, record in records.items()}
    for name, report in reports.items():
        digests = {file: digest_of_report(file, text) for file, text in report.items()}
        families[name] = {**families[name], "digests": digests}
    entries = [
        Entry(
            name,
            families[name]["fault"],
            tuple(families[name]["others"]),
            record,
            is_sample=name == gallery["sample"],
        )
        for name, record in sorted(records.items())
    ]
    data: Gallery = {"sample": gallery["sample"], "families": families}
    return MadeGallery(data, reports, gallery_index(entries))


def report_files(record: FailureRecord) -> dict[str, str]:
    """Return the text of each file of a report, by the file's name."""
    names = FailureFolder(Path())
    return {
        names.record.name: one_item_a_line(cast("Json", record)),
        names.report.name: failure_page(record),
        names.issue.name: issue(record),
    }


def write_gallery(made: MadeGallery, folder: GalleryFolder) -> None:
    """Write what is kept of a gallery: its data, its overview and its sample."""
    folder.path.mkdir(parents=True, exist_ok=True)
    folder.index.write_text(index_text(made.data), encoding="utf-8")
    folder.overview.write_text(made.overview, encoding="utf-8")
    _write_report(made.reports[made.data["sample"]], folder.sample)


def write_pages(made: MadeGallery, pages: Path) -> None:
    """Write the report of every family, each into a folder of its own."""
    for name, report in made.reports.items():
        _write_report(report, pages / name)


def _write_report(report: Mapping[str, str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in report.items():
        (folder / name).write_text(text, encoding="utf-8")


def _with_schedule(family: Family, scenarios: Mapping[str, Scenario], root: Path) -> Family:
    """Find the smallest crash that the pinned oracle catches, with the fewest other facts."""
    scenario = scenarios[family["shows"]]
    request = SessionRequest((scenario,), root, seed=family["seed"], jobs=_jobs())
    with Session(request) as session:
        session.explore()
        (outcome,) = session.outcomes
    caught = [r for r in outcome.results if scenario.pin.oracle in r.oracles]
    if not caught:
        raise HarnessError(f"{scenario.name} was not caught by {scenario.pin.oracle}")
    best = min(caught, key=lambda r: (len(r.schedule.moments), len(r.violations)))
    return {**family, "at": str(best.schedule)}


def _records(
    families: Mapping[str, Family], scenarios: Mapping[str, Scenario], source: str, root: Path
) -> dict[str, FailureRecord]:
    """Run what is shown, all of one seed at once, and record it."""
    found: dict[str, FailureRecord] = {}
    for seed in sorted({family["seed"] for family in families.values()}):
        of_seed = {name: row for name, row in families.items() if row["seed"] == seed}
        chosen = {row["shows"]: parse(row["at"]) for row in of_seed.values()}
        with tempfile.TemporaryDirectory(prefix="gallery-") as kept:
            request = SessionRequest(
                tuple(scenarios[name] for name in chosen),
                root,
                out=Path(kept),
                at=chosen,
                seed=seed,
                jobs=_jobs(),
            )
            with Session(request) as session:
                session.explore()
                session.shrink()
                for (name, row), outcome in zip(of_seed.items(), session.outcomes, strict=True):
                    found[name] = _record(session, outcome, source, row["varies"])
    return found


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
