"""A gallery that was made against what is kept of it: which reports differ, and in what.

The digests decide. Files that are there only explain: those of the sample line by line, those of
another family by the first field of its record that differs, if they are what the digests are of.
"""

from __future__ import annotations

import difflib
import json
from contextlib import suppress
from itertools import zip_longest
from typing import TYPE_CHECKING

from harness.gallery.data import compared, differing_files
from harness.images.run_folder import FAILURE
from harness.model.errors import UsageError
from harness.model.regular_file import read_regular_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.gallery.data import Gallery, GalleryFolder
    from harness.gallery.making import MadeGallery

_SHOWN_LINES = 20
_SHOWN_CHARACTERS = 100
_SHOWN_BEFORE = 20
"""How many characters before the first that differs are shown of a long value."""

_MISSING = object()


def compare_gallery(made: MadeGallery, kept: Gallery, folder: GalleryFolder) -> list[str]:
    """Compare a gallery that was made with what is kept of it, apart from places in the source.

    Args:
        made: What there should be.
        kept: What is kept as data.
        folder: Where it is, with the overview, the sample, and perhaps the pages of then.

    Returns:
        What is different, a line each; lines that explain another are indented.
    """
    sample = made.reports[made.data["sample"]]
    found = list(_of_file(folder.overview, made.overview))
    for name, text in sample.items():
        found += _of_file(folder.sample / name, text)
    for family, report in made.reports.items():
        found += _of_family(family, report, kept, folder)
    found += _left_over(folder, sample)
    return found


def first_difference(before: object, now: object, where: str = "") -> str:
    """Say which is the first field of a JSON value that differs, and how; empty when none does.

    Args:
        before: The value as it was.
        now: The value as it is.
        where: Where it stands in the whole.
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [*before, *(key for key in now if key not in before)]:
            place = f"{where}.{key}" if where else str(key)
            if found := _of_item(before.get(key, _MISSING), now.get(key, _MISSING), place):
                return found
        return ""
    if isinstance(before, list) and isinstance(now, list):
        for number, pair in enumerate(zip_longest(before, now, fillvalue=_MISSING)):
            if found := _of_item(*pair, f"{where}[{number}]"):
                return found
        return ""
    if before == now and type(before) is type(now):
        return ""
    old, new = (json.dumps(value, ensure_ascii=False) for value in (before, now))
    start = next(n for n, (a, b) in enumerate(zip_longest(old, new)) if a != b)
    return f"{where} was {_excerpt(old, start)} and is {_excerpt(new, start)}"


def _of_item(before: object, now: object, where: str) -> str:
    if before is _MISSING:
        return f"{where} is new: {_excerpt(json.dumps(now, ensure_ascii=False), 0)}"
    if now is _MISSING:
        return f"{where} is gone: {_excerpt(json.dumps(before, ensure_ascii=False), 0)}"
    return first_difference(before, now, where)


def _excerpt(text: str, start: int) -> str:
    """Return a value, of a long one the part where it begins to differ."""
    begin = max(0, start - _SHOWN_BEFORE) if len(text) > _SHOWN_CHARACTERS else 0
    end = begin + _SHOWN_CHARACTERS
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"


def _of_file(path: Path, text: str) -> Iterator[str]:
    """Compare a file that is kept, line by line."""
    if not path.is_file():
        yield f"{path} is missing"
        return
    before = compared(path.name, _text(path))
    now = compared(path.name, text)
    if before != now:
        yield f"{path} differs:"
        yield from _diff(before, now)


def _diff(before: str, now: str) -> Iterator[str]:
    found = difflib.unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=0)
    lines = list(found)[2:]
    yield from (f"  {line}" for line in lines[:_SHOWN_LINES])
    if len(lines) > _SHOWN_LINES:
        yield f"  ({len(lines) - _SHOWN_LINES} more lines of {len(lines)} are not shown)"


def _of_family(
    name: str, report: dict[str, str], kept: Gallery, folder: GalleryFolder
) -> Iterator[str]:
    """Compare a report by its digests, and explain it by that of then, if it is there."""
    family = kept["families"].get(name)
    if family is None:
        yield f"{name} is not in {folder.index}"
        return
    files = differing_files(family["digests"], report)
    if not files:
        return
    yield f"{name} differs from its digests in {folder.index}: {', '.join(files)}"
    if name == kept["sample"]:
        return  # its files are compared line by line
    before = _report_of_then(folder.pages / name, family["digests"])
    if before is None or not before.keys() >= report.keys():
        yield f"  its report of then is not in {folder.pages / name}, so in what is not known"
        return
    if FAILURE in files:
        old, new = (json.loads(compared(FAILURE, text[FAILURE])) for text in (before, report))
        yield f"  {FAILURE}: {first_difference(old, new)}"
        return
    for file in files:  # what the report says is the same, and is said in another way
        yield f"  {file}:"
        yield from _diff(compared(file, before[file]), compared(file, report[file]))


def _report_of_then(folder: Path, digests: dict[str, str]) -> dict[str, str] | None:
    """Return the files that the digests are of, unless one is not there or is another."""
    with suppress(UsageError):
        found = {name: _text(folder / name) for name in digests}
        if not differing_files(digests, found):
            return found
    return None


def _text(path: Path) -> str:
    return read_regular_file(path, "report").decode("utf-8", "backslashreplace")


def _left_over(folder: GalleryFolder, sample: dict[str, str]) -> Iterator[str]:
    known = {folder.index, folder.overview, *(folder.sample / name for name in sample)}
    for path in sorted(folder.path.rglob("*")):
        if path.is_file() and path not in known and not path.is_relative_to(folder.pages):
            yield f"{path} does not belong to the gallery: delete it"
