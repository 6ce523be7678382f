"""Text from outside, made safe to show: one line or a block, nothing invisible, never endless.

Labels, payloads, file names and output come from the worker. Control characters (a terminal would
obey them), characters that turn the direction of writing, and halves of surrogate pairs are shown
as what they are. Markup is the business of each renderer.
"""

from __future__ import annotations

import re

LINE_CHARS = 1_000
BLOCK_LINES = 60

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u115f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufeff\ufff9-\uffff\U000e0000-\U000e007f]"
)
_CHECKSUM = re.compile(r"\b[0-9a-f]{32,}\b")
_CHECKSUM_CHARS = 12
_PICTURES = 0x2400
_DELETE = 0x7F
_LAST_PICTURE = 0x1F


def plain(text: str, limit: int = LINE_CHARS) -> str:
    """Return a text as one line that can be shown anywhere.

    Args:
        text: The text.
        limit: How many characters of it to show.
    """
    shown = _UNSAFE.sub(_picture, text[:limit])
    if len(text) > limit:
        shown += f"… ({len(text) - limit} more characters)"
    return shown


def block(text: str, lines: int = BLOCK_LINES, limit: int = LINE_CHARS) -> list[str]:
    """Return the end of a text as lines that can be shown anywhere.

    Args:
        text: The text.
        lines: How many lines to show.
        limit: How many characters of each.
    """
    # No more than what can be shown is looked at: a million lines are as quick as sixty.
    tail = text[-lines * limit * 2 :]
    found = tail.rstrip("\n").split("\n")
    left_out = text.count("\n", 0, len(text) - len(tail)) + max(0, len(found) - lines)
    shown = [plain(line.removesuffix("\r").expandtabs(4), limit) for line in found[-lines:]]
    return [f"… ({left_out} lines before)", *shown] if left_out else shown


def shortened(text: str) -> str:
    """Return a text with the beginnings of its checksums alone; the rest of one tells nobody."""
    return _CHECKSUM.sub(lambda match: f"{match.group()[:_CHECKSUM_CHARS]}…", text)


def _picture(match: re.Match[str]) -> str:
    number = ord(match.group())
    if number <= _LAST_PICTURE:
        return chr(_PICTURES + number)
    if number == _DELETE:
        return "\u2421"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"  # noqa: PLR2004
