"""The committed gallery is what the command makes today, and has every family."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.explore.scenario_files import load
from harness.gallery.data import GalleryFolder, index_text, read_gallery
from harness.record.failure_schema import read_failure_record
from harness.report.html_failure import failure_page

if TYPE_CHECKING:
    from acceptance_command import Command
    from made_gallery import Made

    from harness.gallery.data import Gallery

ROOT = Path(__file__).parents[2]
FOLDER = GalleryFolder(ROOT / "reports" / "gallery")
FAMILIES = read_gallery(FOLDER)["families"]
MOST_BYTES = 250_000


def test_gallery_is_as_committed(made_gallery: Made) -> None:
    """A change in reports is seen in review; `crash-harness gallery` makes them anew."""
    ran = made_gallery.ran
    assert ran.code == 0, ran.out + ran.err
    assert f"{len(FAMILIES)} reports are as their digests say" in ran.out


def _two_families(folder: GalleryFolder) -> Gallery:
    """Write the index of a gallery of the sample and of one more family."""
    kept = read_gallery(FOLDER)
    families = {name: kept["families"][name] for name in ("plan-hosts", "plan-rules")}
    gallery: Gallery = {"sample": "plan-hosts", "families": families}
    folder.path.mkdir()
    folder.index.write_text(index_text(gallery), encoding="utf-8")
    return gallery


def test_gallery_is_made_and_checked_by_the_command(command: Command, tmp_path: Path) -> None:
    """It writes data, overview, sample and pages; the check names what differs, and how."""
    folder = GalleryFolder(tmp_path / "gallery")
    gallery = _two_families(folder)
    assert command("gallery", "--gallery", str(folder.path)).code == 0
    written = {str(p.relative_to(folder.path)) for p in folder.path.rglob("*") if p.is_file()}
    report = {"failure.json", "report.html", "ISSUE.md"}
    assert written == {"gallery.json", "README.md"} | {
        f"{place}/{name}"
        for place in ("sample", "pages/plan-hosts", "pages/plan-rules")
        for name in report
    }
    assert read_gallery(folder) == gallery
    shutil.rmtree(folder.pages)
    gallery["families"]["plan-rules"]["digests"]["report.html"] = "0" * 64
    folder.index.write_text(index_text(gallery), encoding="utf-8")
    issue = folder.sample / "ISSUE.md"
    issue.write_text(issue.read_text("utf-8").replace("plan", "Plan"), encoding="utf-8")
    before = {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}
    ran = command("gallery", "--check", "--gallery", str(folder.path))
    assert ran.code == 1
    assert f"{issue} differs:\n  @@" in ran.out
    assert f"plan-rules differs from its digests in {folder.index}: report.html\n" in ran.out
    assert "plan-hosts differs" not in ran.out
    assert before == {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}


def test_every_known_bad_worker_is_in_one_family() -> None:
    """The gallery holds the report of each known-bad worker family."""
    pinned = {s.name for s in load(str(ROOT / "scenarios")).values() if s.pin.outcome == "broken"}
    named = [name for f in FAMILIES.values() for name in (f["shows"], *f["others"])]
    assert sorted(named) == sorted(pinned)
    modules = (ROOT / "scenarios" / "known_bad").glob("[a-z]*.py")
    assert set(FAMILIES) == {path.stem.replace("_", "-") for path in modules}
    assert all(family["fault"] for family in FAMILIES.values())


@pytest.mark.parametrize("name", FAMILIES)
def test_first_screen_answers_three_questions(made_gallery: Made, name: str) -> None:
    """What broke, why and what to change come before everything else, and are short.

    In a browser, `test_pages_in_browser.py` measures it.
    """
    page = (made_gallery.pages / name / "report.html").read_text(encoding="utf-8")
    main = page.partition("<main>")[2]
    first = main[: main.index("<h2>")]
    for question in ("What broke", "Why", "What to change"):
        assert question in first
    words = re.sub("<[^>]*>", "", first).split()
    assert len(words) < 200


@pytest.mark.parametrize("name", FAMILIES)
def test_entry_is_a_record_with_its_page(made_gallery: Made, name: str) -> None:
    """An entry can be read, rendered and run again, and stays small."""
    folder = made_gallery.pages / name
    record = read_failure_record(folder)
    assert record["scenario"] == FAMILIES[name]["shows"]
    assert record["schedule"] == FAMILIES[name]["at"]
    assert record["seed"] == FAMILIES[name]["seed"]
    assert failure_page(record) == (folder / "report.html").read_text(encoding="utf-8")
    assert sum(path.stat().st_size for path in folder.iterdir()) < MOST_BYTES


@pytest.mark.parametrize("place", ["pages", "sample"])
def test_entry_is_run_again_with_its_fingerprint(
    command: Command, made_gallery: Made, place: str
) -> None:
    """What the gallery shows can be run again, of one crash and, as the sample, of two."""
    folder = made_gallery.pages / "ack-before-save" if place == "pages" else FOLDER.sample
    again = command("repro", str(folder), "--times", "3")
    assert again.code == 1, again.out + again.err
    fingerprint = read_failure_record(folder)["fingerprint"]
    assert f"still broken: 3 of 3 runs gave fingerprint {fingerprint}" in again.out
