"""The overview of a gallery, in Markdown: the families, where they broke, and their reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.report.markdown import code
from harness.report.view_model import broken_promises

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harness.record.failure_schema import FailureRecord


@dataclass(frozen=True, slots=True)
class Entry:
    """A family of known-bad workers in a gallery.

    Attributes:
        name: Its name, which is that of its folder.
        fault: What is wrong with the worker.
        others: Scenarios of the family that are not shown.
        record: The record of the failure that is shown.
        is_sample: Whether its report is kept with the overview.
    """

    name: str
    fault: str
    others: tuple[str, ...]
    record: FailureRecord
    is_sample: bool


def gallery_index(entries: Iterable[Entry]) -> str:
    """Render the overview of a gallery."""
    return "\n".join(_lines(entries)) + "\n"


def _lines(entries: Iterable[Entry]) -> Iterator[str]:
    yield "# Gallery"
    yield ""
    yield (
        "One report of each family of known-bad workers. One of them is here as a sample, and of "
        "all the digests. `crash-harness gallery` makes every report, in `pages/`; "
        "`crash-harness gallery --check` makes them anew and compares digests."
    )
    yield ""
    yield "| family | what is wrong with it | killed at | what the report found | report |"
    yield "|---|---|---|---|---|"
    for entry in entries:
        record = entry.record
        names = [code(entry.name)]
        if record["scenario"] != entry.name:
            names.append(f"shown by {code(record['scenario'])}")
        if entry.others:
            names.append(f"also {', '.join(map(code, entry.others))}")
        (first, *_) = broken_promises(record)
        report = (
            "the sample: [page](sample/report.html), [issue](sample/ISSUE.md), "
            "[record](sample/failure.json)"
            if entry.is_sample
            else code(f"pages/{entry.name}")
        )
        yield (
            f"| {', '.join(names)} | {code(entry.fault)} | {code(record['schedule'])} | "
            f"{code(first.found[0])} | {report} |"
        )
