"""The committed gallery is what the command makes today."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acceptance_command import Command

ROOT = Path(__file__).parents[2]


def test_gallery_is_as_committed(command: Command) -> None:
    """Issue 6: a change in reports is seen in review; `crash-harness gallery` makes them anew."""
    ran = command("gallery", "--check")
    assert ran.code == 0, ran.out + ran.err


def test_first_screen_answers_three_questions() -> None:
    """Issue 6: what broke, why and what to change come before everything else, and are short."""
    pages = sorted((ROOT / "reports" / "gallery").glob("*/report.html"))
    assert len(pages) >= 3
    for page in pages:
        main = page.read_text(encoding="utf-8").partition("<main>")[2]
        first = main[: main.index("<h2>")]
        for question in ("What broke", "Why", "What to change"):
            assert question in first, page
        assert len(re.sub("<[^>]*>", "", first).split()) < 220, page
