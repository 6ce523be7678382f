"""Long texts of a record: their beginning says what it is, and their end why."""

from __future__ import annotations

from harness.record.shortened import shortened


def test_the_end_of_a_traceback_is_kept() -> None:
    """The cause stands in the last line, and it was cut away."""
    frames = [f"  File x.py, line {number}" for number in range(500)]
    text = "\n".join(["it died", *frames, "ConnectionError: no redis"])
    short = shortened(text, 300)
    assert short.splitlines()[0] == "it died"
    assert "characters left out" in short.splitlines()[1]
    assert short.splitlines()[2] in frames
    assert short.splitlines()[-1] == "ConnectionError: no redis"
    assert len(short) < 400


def test_a_short_text_stays() -> None:
    """What fits is not touched."""
    assert shortened("a\nb", 3) == "a\nb"


def test_a_single_long_line_is_cut_in_its_middle() -> None:
    """There are no lines to go by."""
    short = shortened("a" * 50 + "b" * 50, 20)
    assert short.startswith("a" * 10)
    assert short.endswith("b" * 10)
