"""What the check of the gallery sees, what it lets pass, and what its index says."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from benchmarks import sample_records
from harness.gallery import check_gallery, families, new_families
from harness.model.canonical_json import one_item_a_line
from harness.model.errors import UsageError
from harness.report.html_failure import failure_page
from harness.report.issue import issue

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.model.canonical_json import Json
    from harness.record.failure_schema import FailureRecord


def as_json(record: FailureRecord) -> str:
    """Return the record as the gallery has it."""
    return one_item_a_line(cast("Json", record))


PAGES = [
    pytest.param(failure_page, "report.html", id="page"),
    pytest.param(issue, "ISSUE.md", id="issue"),
    pytest.param(as_json, "failure.json", id="record"),
]


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
    strike["lines"] = [{"number": strike["line"], "text": '    another(["x"], "],")'}]
    return record


@pytest.mark.parametrize(("page", "name"), PAGES)
def test_moved_line_is_no_change(
    tmp_path: Path, page: Callable[[FailureRecord], str], name: str
) -> None:
    """An edit elsewhere in a worker leaves the gallery as it is."""
    (tmp_path / name).write_text(page(failure_record()), encoding="utf-8")
    assert page(_moved()) != page(failure_record())
    assert check_gallery({tmp_path / name: page(_moved())}, tmp_path) == []


@pytest.mark.parametrize(("page", "name"), PAGES)
def test_everything_else_is_a_change(
    tmp_path: Path, page: Callable[[FailureRecord], str], name: str
) -> None:
    """A change of what a report says is seen, in what stands after the source, too."""
    (tmp_path / name).write_text(page(failure_record()), encoding="utf-8")
    for key, text in (("scenario", "others"), ("schedule", "order.scan.after#1=kill")):
        record = failure_record()
        record[key] = text  # type: ignore[literal-required]
        assert check_gallery({tmp_path / name: page(record)}, tmp_path)
    other = failure_record()
    other["violations"][0]["message"] = "charge 'o1' happened 3 times"
    assert check_gallery({tmp_path / name: page(other)}, tmp_path)
    other = failure_record()
    other["strikes"][0]["file"] = "shop/other.py"
    assert check_gallery({tmp_path / name: page(other)}, tmp_path)


def test_missing_and_left_over_files_are_changes(tmp_path: Path) -> None:
    """The gallery has an overview, a digest of every file of a report, and no others."""
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "report.html").write_text("", encoding="utf-8")
    assert check_gallery(
        {tmp_path / "README.md": "", tmp_path / "new" / "a.html": ""}, tmp_path
    ) == [
        f"{tmp_path}/README.md is missing",
        f"{tmp_path}/new/a.html has no digest in gallery.json",
        f"{tmp_path}/gone/report.html belongs to no family",
    ]


def test_gallery_shows_what_its_index_names(tmp_path: Path) -> None:
    """Without an index nothing is chosen; with one that is not well formed nothing is guessed."""
    assert families(tmp_path) == {}
    index = tmp_path / "gallery.json"
    shown = new_families(["b", "a", "c"], known=["c"])
    assert list(shown) == ["b", "a"]
    index.write_text(one_item_a_line(cast("Json", shown)), encoding="utf-8")
    assert families(tmp_path) == shown
    index.write_text('{"b": "x.y.z#1=kill"}', encoding="utf-8")
    with pytest.raises(UsageError, match="family 'b': Expected `object`, got `str`"):
        families(tmp_path)
    index.write_text("[]", encoding="utf-8")
    with pytest.raises(UsageError, match=r"gallery.json: Expected `object`, got `array`"):
        families(tmp_path)
    index.write_text("{", encoding="utf-8")
    with pytest.raises(UsageError, match="is not JSON"):
        families(tmp_path)
