"""What is kept of a gallery: its families, the digests of their reports, and one report.

::

    reports/gallery/               GalleryFolder
      gallery.json                 the families, how each is shown, the digests of its report
      README.md                    the overview
      sample/                      the report of one family: failure.json, report.html, ISSUE.md
      pages/NAME/                  the reports of all of them; made when wanted, not kept

Times, places and versions are left out of a report, so a change of a digest is a change of what the
report says. Where a point stands in the source, and what stands around it, is shown and not
compared: it changes with every edit above it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import reprlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from harness.images.run_folder import FAILURE, FailureFolder
from harness.model.canonical_json import one_item_a_line
from harness.model.errors import UnknownNameError, UsageError
from harness.record.read_json import read_json
from harness.record.typed_dicts import as_declared
from harness.scenario_fields import NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SOURCE = re.compile(
    r'<ol class="source".*?</ol>'  # of a page
    r"|^## The line: .*\Z"  # of the draft of an issue, whose last part it is
    r"|(?<=\.py):[0-9]+",
    re.DOTALL | re.MULTILINE,
)


_NAMES = FailureFolder(Path())
_REPORT_FILES = (_NAMES.record.name, _NAMES.report.name, _NAMES.issue.name)
"""The names of the files of a report."""


class Family(TypedDict):
    """A family of known-bad workers, and how it is shown.

    `fault` is what is wrong with them, for the overview; a report has to find it out. `shows` is
    the scenario that stands for the family, `at` its schedule, `seed` its seed, `others` are the
    other scenarios. `varies` names what this worker saves that differs from run to run, by its keys
    in JSON. `digests` has the digest of each file of its report, by the file's name.
    """

    fault: str
    shows: str
    at: str
    seed: int
    others: list[str]
    varies: list[str]
    digests: dict[str, str]


class Gallery(TypedDict):
    """The families by name, and the name of the one whose report is kept; none when it is empty."""

    sample: str
    families: dict[str, Family]


@dataclass(frozen=True, slots=True)
class GalleryFolder:
    """The folder of a gallery.

    Attributes:
        path: Where it is.
    """

    path: Path

    @property
    def index(self) -> Path:
        """What is kept as data."""
        return self.path / "gallery.json"

    @property
    def overview(self) -> Path:
        """The overview."""
        return self.path / "README.md"

    @property
    def sample(self) -> Path:
        """The report that is kept."""
        return self.path / "sample"

    @property
    def pages(self) -> Path:
        """The reports that are made when they are wanted."""
        return self.path / "pages"


def read_gallery(folder: GalleryFolder) -> Gallery:
    """Read what is kept of a gallery; it is empty when there is none.

    Args:
        folder: Its folder.

    Raises:
        UsageError: Its index is not well formed.
    """
    index = folder.index
    if not os.path.lexists(index):
        return {"sample": "", "families": {}}
    read = as_declared(read_json(index, "index of a gallery"), dict[str, object], str(index))
    rows = as_declared(read.get("families"), dict[str, object], f"{index}: 'families'")
    sample = as_declared(read.get("sample"), str, f"{index}: 'sample'")
    families = {
        name: as_declared(row, Family, f"{index}: family {name!r}") for name, row in rows.items()
    }
    for name, family in families.items():
        if not NAME.fullmatch(name):
            raise UsageError(
                f"{index}: the family {reprlib.repr(name)} is not named in lower-case words joined "
                "by '-', '_' or '.'; its report lies in a folder of this name"
            )
        for file in family["digests"]:
            if file not in _REPORT_FILES:
                raise UnknownNameError(f"file of a report in {index},", file, _REPORT_FILES)
    if (sample or families) and sample not in families:
        raise UnknownNameError(f"family in {index}, named as its sample:", sample, families)
    return {"sample": sample, "families": families}


def index_text(gallery: Gallery) -> str:
    """Return the text of an index."""
    return json.dumps(gallery, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def with_new_families(gallery: Gallery, names: Iterable[str]) -> Gallery:
    """Return a gallery with a family for each scenario that none has yet, named like it.

    Args:
        gallery: The gallery.
        names: Names of scenarios.
    """
    families = dict(gallery["families"])
    known = {name for row in families.values() for name in (row["shows"], *row["others"])}
    for name in names:
        if name not in known:
            families[name] = Family(
                fault="", shows=name, at="", seed=0, others=[], varies=[], digests={}
            )
    return {"sample": gallery["sample"] or next(iter(families), ""), "families": families}


def digest_of_report(name: str, text: str) -> str:
    """Return the SHA-256 of what is compared of a file of a report.

    Args:
        name: The file's name.
        text: What is in it.
    """
    return hashlib.sha256(compared(name, text).encode()).hexdigest()


def compared(name: str, text: str) -> str:
    """Return what is compared of a file of a report: all but places in the source.

    Args:
        name: The file's name.
        text: What is in it.
    """
    if name == FAILURE:
        with suppress(ValueError, KeyError, TypeError):  # what is not a record differs as it is
            record = json.loads(text)
            for strike in record["strikes"]:
                strike["line"], strike["lines"] = 0, []
            text = one_item_a_line(record)
    return _SOURCE.sub("", text)


def differing_files(digests: dict[str, str], report: dict[str, str]) -> Sequence[str]:
    """Return the names of the files of a report that are other than their digests say.

    Args:
        digests: The digests, by the file's name.
        report: The text of each file, by its name.
    """
    return [n for n, text in report.items() if digest_of_report(n, text) != digests.get(n)]
