"""What the check of the gallery sees, and what it lets pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks import sample_records
from harness.gallery import check_gallery, shown_in
from harness.render.html_failure import failure_page
from harness.render.issue import issue

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.failure_record import FailureRecord

PAGES = [failure_page, issue]


def failure_record() -> FailureRecord:
    """Return the record of a failure by a crash at a point whose place is known."""
    record = sample_records.failure_record()
    del record["strikes"][1:]
    return record


def _moved() -> FailureRecord:
    """Return the record of the same failure after an edit above and around its point."""
    record = failure_record()
    (strike,) = record["strikes"]
    strike["line"] += 5
    strike["lines"] = [{"number": strike["line"], "text": "    another(line)"}]
    return record


@pytest.mark.parametrize("page", PAGES)
def test_moved_line_is_no_change(tmp_path: Path, page: Callable[[FailureRecord], str]) -> None:
    """An edit elsewhere in a worker leaves the gallery as it is."""
    (tmp_path / "page").write_text(page(failure_record()), encoding="utf-8")
    assert page(_moved()) != page(failure_record())
    assert check_gallery({tmp_path / "page": page(_moved())}) == []


@pytest.mark.parametrize("page", PAGES)
def test_everything_else_is_a_change(tmp_path: Path, page: Callable[[FailureRecord], str]) -> None:
    """Issue 6: a change of what a report says is seen, in what stands after the source, too."""
    (tmp_path / "page").write_text(page(failure_record()), encoding="utf-8")
    for key, text in (("scenario", "others"), ("schedule", "order.scan.after#1=kill")):
        record = failure_record()
        record[key] = text  # type: ignore[literal-required]
        assert check_gallery({tmp_path / "page": page(record)})
    other = failure_record()
    other["violations"][0]["message"] = "charge 'o1' happened 3 times"
    assert check_gallery({tmp_path / "page": page(other)})
    other = failure_record()
    other["strikes"][0]["file"] = "shop/other.py"
    assert check_gallery({tmp_path / "page": page(other)})
    assert check_gallery({tmp_path / "nowhere": page(other)}) == [f"{tmp_path}/nowhere is missing"]


def test_gallery_shows_what_its_index_names(tmp_path: Path) -> None:
    """Without an index nothing is chosen."""
    assert shown_in(tmp_path) == ()
    (tmp_path / "gallery.json").write_text('{"b": "x.y.z#1=kill", "a": ""}', encoding="utf-8")
    assert shown_in(tmp_path) == ("b", "a")
