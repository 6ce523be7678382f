"""What the check of the gallery sees, what it lets pass, and what its index says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks import sample_records
from harness.gallery.comparison import compare_gallery, first_difference
from harness.gallery.data import (
    Family,
    GalleryFolder,
    differing_files,
    digest_of_report,
    index_text,
    read_gallery,
    with_new_families,
)
from harness.gallery.making import MadeGallery, report_files, write_gallery, write_pages
from harness.model.errors import UsageError

if TYPE_CHECKING:
    from harness.gallery.data import Gallery
    from harness.record.failure_schema import FailureRecord

COMMITTED = GalleryFolder(Path(__file__).parents[2] / "reports" / "gallery")
FILES = ("failure.json", "report.html", "ISSUE.md")
NOTHING: Gallery = {"sample": "", "families": {}}


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


def _message(text: str) -> FailureRecord:
    """Return the record of a failure that was found with other words."""
    record = failure_record()
    record["violations"][0]["message"] = text
    return record


def _made(**records: FailureRecord) -> MadeGallery:
    """Return a gallery of these records, by family; the first is the sample."""
    reports = {name: report_files(record) for name, record in records.items()}
    families = {
        name: Family(
            fault="",
            shows=records[name]["scenario"],
            at=records[name]["schedule"],
            seed=0,
            others=[],
            varies=[],
            digests={file: digest_of_report(file, text) for file, text in report.items()},
        )
        for name, report in reports.items()
    }
    data: Gallery = {"sample": next(iter(records)), "families": families}
    return MadeGallery(data, reports, "# Gallery\n")


@pytest.fixture
def folder(tmp_path: Path) -> GalleryFolder:
    """Write a gallery of two families, of which `a` is the sample."""
    folder = GalleryFolder(tmp_path / "gallery")
    write_gallery(_made(a=failure_record(), b=failure_record()), folder)
    return folder


def _compare(made: MadeGallery, folder: GalleryFolder) -> list[str]:
    return compare_gallery(made, read_gallery(folder), folder)


def test_moved_line_is_no_change(folder: GalleryFolder) -> None:
    """An edit elsewhere in a worker leaves the gallery as it is, in every file of a report."""
    before, now = report_files(failure_record()), report_files(_moved())
    assert all(before[name] != now[name] for name in FILES)
    assert _compare(_made(a=_moved(), b=_moved()), folder) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("scenario", "others"),
        ("schedule", "order.scan.after#1=kill"),
        ("message", "charge 'o1' happened 3 times"),
        ("file", "shop/other.py"),
    ],
)
def test_everything_else_is_a_change(folder: GalleryFolder, field: str, value: str) -> None:
    """A change of what a report says is seen in each of its files, after the source, too."""
    record = failure_record()
    if field == "message":
        record["violations"][0]["message"] = value
    elif field == "file":
        record["strikes"][0]["file"] = value
    else:
        record[field] = value  # type: ignore[literal-required]
    found = _compare(_made(a=record, b=record), folder)
    for name in FILES:
        assert f"{folder.sample / name} differs:" in found
    assert f"b differs from its digests in {folder.index}: {', '.join(FILES)}" in found


def test_sample_is_compared_line_by_line(folder: GalleryFolder) -> None:
    """The change of a file that is committed is shown as a bounded diff."""
    found = _compare(_made(a=_message("charged thrice"), b=failure_record()), folder)
    start = found.index(f"{folder.sample / 'ISSUE.md'} differs:")
    assert any(line.startswith("  -") and "happened 2 times" in line for line in found[start:])
    assert any(line.startswith("  +") and "charged thrice" in line for line in found[start:])
    page = folder.sample / "report.html"
    page.write_text("".join(f"line {number}\n" for number in range(500)), encoding="utf-8")
    found = _compare(_made(a=failure_record(), b=failure_record()), folder)
    assert found[0] == f"{page} differs:"
    assert len(found) == 22
    assert "more lines of" in found[-1]


def test_other_report_is_explained_by_its_first_field(folder: GalleryFolder) -> None:
    """Of a report whose files of then are there, the field of the record that changed is named."""
    write_pages(_made(a=failure_record(), b=failure_record()), folder.pages)
    found = _compare(_made(a=failure_record(), b=_message("charged thrice")), folder)
    head, field = found
    assert head == f"b differs from its digests in {folder.index}: {', '.join(FILES)}"
    assert field.startswith("  failure.json: violations[0].message was ")
    assert field.endswith(""""charge 'o1' happened 2 times" and is "charged thrice\"""")


def test_other_wording_of_the_same_record_is_shown(folder: GalleryFolder) -> None:
    """When a renderer changed and no record did, the lines of the page are shown."""
    made = _made(a=failure_record(), b=failure_record())
    write_pages(made, folder.pages)
    made.reports["b"]["ISSUE.md"] = "# Another\n" + made.reports["b"]["ISSUE.md"]
    assert _compare(made, folder) == [
        f"b differs from its digests in {folder.index}: ISSUE.md",
        "  ISSUE.md:",
        "  @@ -0,0 +1 @@",
        "  +# Another",
    ]


def test_pages_that_are_around_decide_nothing(folder: GalleryFolder) -> None:
    """Pages are not committed: those of another state neither hide a change nor make one."""
    other = _made(a=_message("charged thrice"), b=_message("charged thrice"))
    write_pages(other, folder.pages)
    assert _compare(_made(a=failure_record(), b=failure_record()), folder) == []
    found = _compare(_made(a=failure_record(), b=_message("charged thrice")), folder)
    assert found == [
        f"b differs from its digests in {folder.index}: {', '.join(FILES)}",
        f"  its report of then is not in {folder.pages / 'b'}, so in what is not known",
    ]


def test_digests_of_the_sample_are_compared_too(folder: GalleryFolder) -> None:
    """A sample that is right does not hide that the data is of another state."""
    kept = read_gallery(folder)
    kept["families"]["a"]["digests"]["ISSUE.md"] = "0" * 64
    folder.index.write_text(index_text(kept), encoding="utf-8")
    assert _compare(_made(a=failure_record(), b=failure_record()), folder) == [
        f"a differs from its digests in {folder.index}: ISSUE.md"
    ]


def test_missing_and_left_over_files_are_changes(folder: GalleryFolder) -> None:
    """The gallery has an overview, a digest of every report and one sample, and no other files."""
    folder.overview.unlink()
    (folder.sample / "ISSUE.md").unlink()
    left = folder.path / "gone" / "report.html"
    left.parent.mkdir()
    left.write_text("", encoding="utf-8")
    made = _made(a=failure_record(), b=failure_record(), c=failure_record())
    assert _compare(made, folder) == [
        f"{folder.overview} is missing",
        f"{folder.sample}/ISSUE.md is missing",
        f"c is not in {folder.index}",
        f"{left} does not belong to the gallery: delete it",
    ]


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ({"a": 1, "b": [1, {"c": 2}]}, {"a": 1, "b": [1, {"c": 2}]}, ""),
        ({"a": [1, {"c": 2}]}, {"a": [1, {"c": 3}]}, "a[1].c was 2 and is 3"),
        ({"lives": 1}, {"incarnations": 1}, "lives is gone: 1"),
        ({"a": 1}, {"a": 1, "b": "x"}, 'b is new: "x"'),
        ([1], [1, 2], "[1] is new: 2"),
        ({"a": [1, 2]}, {"a": [1]}, "a[1] is gone: 2"),
        ({"a": True}, {"a": 1}, "a was true and is 1"),
        ({"a": {"b": 1}}, {"a": None}, 'a was {"b": 1} and is null'),
        ({"a": "x"}, {"a": "xy"}, 'a was "x" and is "xy"'),
    ],
)
def test_first_difference_names_the_field(before: object, now: object, said: str) -> None:
    """Whatever kind of change it is, the message says where it is and what it is."""
    assert first_difference(before, now) == said


def test_long_values_are_shown_where_they_differ() -> None:
    """Of two long texts that differ far behind, the part is shown in which they do."""
    said = first_difference({"a": "x" * 500 + "old"}, {"a": "x" * 500 + "new"})
    assert "old" in said
    assert "new" in said
    assert len(said) < 300


def test_gallery_shows_what_its_index_names(tmp_path: Path) -> None:
    """Without an index nothing is chosen; with one that is not well formed nothing is guessed."""
    folder = GalleryFolder(tmp_path)
    assert read_gallery(folder) == NOTHING
    shown = with_new_families(with_new_families(NOTHING, ["b", "a"]), ["a", "c"])
    assert list(shown["families"]) == ["b", "a", "c"]
    assert shown["sample"] == "b"
    folder.index.write_text(index_text(shown), encoding="utf-8")
    assert read_gallery(folder) == shown
    for text, message in (
        ('{"sample": "b", "families": {"b": "x.y.z#1=kill"}}', "family 'b': Expected `object`, g"),
        ('{"sample": "b"}', r"gallery.json: 'families': Expected `object`, got `null`"),
        (index_text({**shown, "sample": "bb"}), "its sample: 'bb'; did you mean 'b'"),
        ("[]", r"gallery.json: Expected `object`, got `array`"),
        ("{", "is not JSON"),
    ):
        folder.index.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match=message):
            read_gallery(folder)


def test_committed_sample_is_what_its_digests_say() -> None:
    """After a merge, data and sample are of one state; this is seen without running anything."""
    kept = read_gallery(COMMITTED)
    report = {name: (COMMITTED.sample / name).read_text(encoding="utf-8") for name in FILES}
    assert differing_files(kept["families"][kept["sample"]]["digests"], report) == []
