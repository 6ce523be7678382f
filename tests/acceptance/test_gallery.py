"""The committed gallery is what the command makes today, and has every family."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.explore.scenario_files import load
from harness.gallery import families
from harness.record.failure_schema import read_failure_record
from harness.report.html_failure import failure_page

if TYPE_CHECKING:
    from acceptance_command import Command

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "reports" / "gallery"
FAMILIES = families(GALLERY)
MOST_BYTES = 250_000


def test_gallery_is_as_committed(command: Command) -> None:
    """A change in reports is seen in review; `crash-harness gallery` makes them anew."""
    ran = command("gallery", "--check")
    assert ran.code == 0, ran.out + ran.err


def test_every_known_bad_worker_is_in_one_family() -> None:
    """The gallery holds the report of each known-bad worker family."""
    pinned = {s.name for s in load(str(ROOT / "scenarios")).values() if s.pin.outcome == "broken"}
    named = [name for f in FAMILIES.values() for name in (f["shows"], *f["others"])]
    assert sorted(named) == sorted(pinned)
    modules = (ROOT / "scenarios" / "known_bad").glob("[a-z]*.py")
    assert set(FAMILIES) == {path.stem.replace("_", "-") for path in modules}
    assert all(family["fault"] for family in FAMILIES.values())


@pytest.mark.parametrize("name", FAMILIES)
def test_first_screen_answers_three_questions(name: str) -> None:
    """What broke, why and what to change come before everything else, and are short.

    In a browser, `test_pages_in_browser.py` measures it.
    """
    main = (GALLERY / name / "report.html").read_text(encoding="utf-8").partition("<main>")[2]
    first = main[: main.index("<h2>")]
    for question in ("What broke", "Why", "What to change"):
        assert question in first
    words = re.sub("<[^>]*>", "", first).split()
    assert len(words) < 200


@pytest.mark.parametrize("name", FAMILIES)
def test_entry_is_a_record_with_its_page(name: str) -> None:
    """An entry can be read, rendered and run again, and stays small."""
    record = read_failure_record(GALLERY / name)
    assert record["scenario"] == FAMILIES[name]["shows"]
    assert record["schedule"] == FAMILIES[name]["at"]
    assert failure_page(record) == (GALLERY / name / "report.html").read_text(encoding="utf-8")
    assert sum(path.stat().st_size for path in (GALLERY / name).iterdir()) < MOST_BYTES


@pytest.mark.parametrize("name", ["ack-before-save", "plan-hosts"])
def test_entry_is_run_again_with_its_fingerprint(command: Command, name: str) -> None:
    """What the gallery shows can be run again, of one crash and of two."""
    again = command("repro", str(GALLERY / name), "--times", "3")
    assert again.code == 1, again.out + again.err
    fingerprint = read_failure_record(GALLERY / name)["fingerprint"]
    assert f"still broken: 3 of 3 runs gave fingerprint {fingerprint}" in again.out
