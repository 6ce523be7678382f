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
    """

    name: str
    fault: str
    others: tuple[str, ...]
    record: FailureRecord


def gallery_index(entries: Iterable[Entry]) -> str:
    """Render the overview of a gallery."""
    return "\n".join(_lines(entries)) + "\n"


def _lines(entries: Iterable[Entry]) -> Iterator[str]:
    yield "# Gallery"
    yield ""
    yield (
        "One report of each family of known-bad workers. `crash-harness gallery` makes them; one "
        "is here as a sample, and of all the digests. `crash-harness gallery --check` compares."
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
        yield (
            f"| {', '.join(names)} | {code(entry.fault)} | {code(record['schedule'])} | "
            f"{code(first.found[0])} | [page]({entry.name}/report.html), "
            f"[issue]({entry.name}/ISSUE.md) |"
        )
