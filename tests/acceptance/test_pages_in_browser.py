"""The pages in a browser and before an HTML validator.

Opt-in, for they need programs that pip does not bring: Chromium, Node, and a folder with
``npm install html-validate axe-core playwright-core``, named by ``CRASH_HARNESS_NODE_MODULES``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.large_records import large_failure, large_run
from benchmarks.sample_records import failure_record, run_before, run_record
from harness.report.html_failure import failure_page
from harness.report.html_run import run_page

if TYPE_CHECKING:
    from made_gallery import Made

HERE = Path(__file__).parent
SAMPLE = HERE.parents[1] / "reports" / "gallery" / "sample"
MODULES = os.environ.get("CRASH_HARNESS_NODE_MODULES", "")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
NODE = shutil.which("node") or ""
DEADLINE_S = 900


@pytest.fixture
def pages(tmp_path: Path) -> list[Path]:
    """Write the pages of small and of large records."""
    texts = {
        "run.html": run_page(run_record(), run_before()),
        "failure.html": failure_page(failure_record()),
        "large-run.html": run_page(large_run(10_000), None),
        "large-failure.html": failure_page(large_failure(100_000)),
        "gallery.html": (SAMPLE / "report.html").read_text(encoding="utf-8"),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return [tmp_path / name for name in texts]


def _need(*what: tuple[str, str]) -> None:
    for name, found in what:
        if not found:
            pytest.skip(f"{name} is not there; see this module's docstring")


def test_pages_in_chromium(pages: list[Path]) -> None:
    """Axe finds nothing, at phone and desktop width, in both colour schemes.

    Nor is anything asked of a network, wider than the window, or slow to open (3 s).
    """
    _need(("node", NODE), ("chromium", CHROMIUM), ("CRASH_HARNESS_NODE_MODULES", MODULES))
    done = subprocess.run(
        [NODE, HERE / "pages_in_browser.mjs", MODULES, CHROMIUM, *pages],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


def test_first_screen_and_print_of_the_gallery(request: pytest.FixtureRequest) -> None:
    """The three answers are on the first screen, on a phone and a desktop; print is whole.

    Each answer lies inside the first viewport, at 390x844 and at 1280x800. On A4 what is folded is
    shown, nothing is cut, and the ground is white in the dark scheme, too.
    """
    _need(("node", NODE), ("chromium", CHROMIUM), ("CRASH_HARNESS_NODE_MODULES", MODULES))
    made: Made = request.getfixturevalue("made_gallery")  # not made for a test that is skipped
    pages = sorted(made.pages.glob("*/report.html"))
    assert pages
    done = subprocess.run(
        [NODE, HERE / "print_and_first_screen.mjs", MODULES, CHROMIUM, *pages],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


def test_pages_are_valid_html(pages: list[Path]) -> None:
    """The recommended rules of html-validate find nothing."""
    _need(("node", NODE), ("CRASH_HARNESS_NODE_MODULES", MODULES))
    done = subprocess.run(
        [NODE, f"{MODULES}/html-validate/bin/html-validate.mjs", *pages],
        cwd=pages[0].parent,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
