"""Texts of several lines, made short: the first line says what it is, and the end why."""

from __future__ import annotations


def shortened(text: str, most_chars: int) -> str:
    """Leave out the middle of a text that is too long.

    The end of a traceback names its cause; its beginning is the frames of everybody.

    Args:
        text: The text.
        most_chars: How many characters to keep; the line that says how many are missing comes on
            top of them.
    """
    if len(text) <= most_chars:
        return text
    first = text.partition("\n")[0][: most_chars // 2]
    end = text[len(first) - most_chars :]
    # A line that is cut says little, unless it is all that there is.
    end = end.partition("\n")[2] or end
    return f"{first}\n… ({len(text) - len(first) - len(end):,} characters left out)\n{end}"
