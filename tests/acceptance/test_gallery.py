"""The committed gallery is what the command makes today, and has every family."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from pathlib import Path

import pytest
from acceptance_command import Command

from harness.explore.scenario_files import load
from harness.gallery import INDEX, check_gallery, families
from harness.record.failure_schema import read_failure_record
from harness.report.html_failure import failure_page

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "reports" / "gallery"
FAMILIES = families(GALLERY)
MOST_BYTES = 250_000


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the gallery, once for all processes of a test run."""
    home = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        home = home.parent
    out = home / "gallery"
    with (home / "gallery.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not out.exists():
            out.mkdir()
            shutil.copy(GALLERY / INDEX, out)
            ran = Command(home)("gallery", "--out", str(out))
            assert ran.code == 0, ran.out + ran.err
    return out


def test_gallery_is_as_committed(made: Path) -> None:
    """A change in reports is seen in review; `crash-harness gallery` makes them anew."""
    pages = {GALLERY / p.relative_to(made): p.read_text("utf-8") for p in made.rglob("*.*")}
    assert check_gallery(pages, GALLERY) == []


def test_the_check_is_a_command(command: Command, made: Path, tmp_path: Path) -> None:
    """It names what is another: a page that is there by a diff, one that is not by its digest."""
    out = tmp_path / "gallery"
    shutil.copytree(made, out)
    assert command("gallery", "--check", "--out", str(out)).code == 0
    shutil.rmtree(out / "plan-rules")
    index = json.loads((out / INDEX).read_text("utf-8"))
    index["plan-rules"]["digests"]["report.html"] = "0" * 64
    (out / INDEX).write_text(json.dumps(index, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    page = out / "plan-hosts" / "ISSUE.md"
    page.write_text(page.read_text("utf-8").replace("plan", "Plan"), encoding="utf-8")
    ran = command("gallery", "--check", "--out", str(out))
    assert ran.code == 1
    assert f"{page} is another:" in ran.out
    assert f"{out}/plan-rules/report.html is another, by its digest in {INDEX}" in ran.out
    assert "plan-rules/ISSUE.md" not in ran.out


def test_every_known_bad_worker_is_in_one_family() -> None:
    """The gallery holds the report of each known-bad worker family."""
    pinned = {s.name for s in load(str(ROOT / "scenarios")).values() if s.pin.outcome == "broken"}
    named = [name for f in FAMILIES.values() for name in (f["shows"], *f["others"])]
    assert sorted(named) == sorted(pinned)
    modules = (ROOT / "scenarios" / "known_bad").glob("[a-z]*.py")
    assert set(FAMILIES) == {path.stem.replace("_", "-") for path in modules}
    assert all(family["fault"] for family in FAMILIES.values())


@pytest.mark.parametrize("name", FAMILIES)
def test_first_screen_answers_three_questions(made: Path, name: str) -> None:
    """What broke, why and what to change come before everything else, and are short.

    In a browser, `test_pages_in_browser.py` measures it.
    """
    main = (made / name / "report.html").read_text(encoding="utf-8").partition("<main>")[2]
    first = main[: main.index("<h2>")]
    for question in ("What broke", "Why", "What to change"):
        assert question in first
    words = re.sub("<[^>]*>", "", first).split()
    assert len(words) < 200


@pytest.mark.parametrize("name", FAMILIES)
def test_entry_is_a_record_with_its_page(made: Path, name: str) -> None:
    """An entry can be read, rendered and run again, and stays small."""
    record = read_failure_record(made / name)
    assert record["scenario"] == FAMILIES[name]["shows"]
    assert record["schedule"] == FAMILIES[name]["at"]
    assert failure_page(record) == (made / name / "report.html").read_text(encoding="utf-8")
    assert sum(path.stat().st_size for path in (made / name).iterdir()) < MOST_BYTES


@pytest.mark.parametrize("name", ["ack-before-save", "plan-hosts"])
def test_entry_is_run_again_with_its_fingerprint(command: Command, made: Path, name: str) -> None:
    """What the gallery shows can be run again, of one crash and of two."""
    again = command("repro", str(made / name), "--times", "3")
    assert again.code == 1, again.out + again.err
    fingerprint = read_failure_record(made / name)["fingerprint"]
    assert f"still broken: 3 of 3 runs gave fingerprint {fingerprint}" in again.out
