"""Reads lists of seeds such as ``1-10`` or ``0,3,7-9``."""

from __future__ import annotations

from harness.model.errors import UsageError

MOST_SEEDS = 10_000
"""How many seeds a list may name; each is a whole run."""

MOST_DIGITS = 15
"""Of a seed; longer ones are not told apart by everything that reads a record."""

_EXAMPLE = "write single seeds and ranges with commas between them, such as 0,3,7-9"


def parse_seeds(text: str) -> tuple[int, ...]:
    """Return the seeds that a text names.

    Args:
        text: Seeds and ranges of seeds, joined by commas. Both ends of a range belong to it, and
            spaces around a number are allowed.

    Returns:
        The seeds in the order of the text, each once.

    Raises:
        UsageError: The text is not well formed, a range runs backwards, or there are more than
            `MOST_SEEDS`.
    """
    seeds: dict[int, None] = {}
    for part in text.split(","):
        span = _span(part.strip(), text)
        if len(span) + len(seeds) > MOST_SEEDS:
            raise UsageError(
                f"seeds {_quoted(text)}: more than {MOST_SEEDS:,} seeds in one run; "
                "split them over several"
            )
        seeds.update(dict.fromkeys(span))
    return tuple(seeds)


def _span(part: str, text: str) -> range:
    if not part:
        gap = "an empty place between commas" if "," in text else "nothing"
        raise UsageError(f"seeds {_quoted(text)}: found {gap} where a seed should be; {_EXAMPLE}")
    first_text, dash, last_text = part.partition("-")
    first = _seed(first_text.strip(), part, text)
    last = _seed(last_text.strip(), part, text) if dash else first
    if last < first:
        raise UsageError(
            f"seeds {_quoted(text)}: the range {first}-{last} runs backwards; "
            f"did you mean {last}-{first}?"
        )
    return range(first, last + 1)


def _seed(number: str, part: str, text: str) -> int:
    if not (number.isascii() and number.isdigit()):
        raise UsageError(
            f"seeds {_quoted(text)}: {_quoted(part)} is neither a whole number from 0 nor a range "
            f"of them; {_EXAMPLE}"
        )
    if len(number) > MOST_DIGITS:
        raise UsageError(
            f"seeds {_quoted(text)}: {_quoted(number)} has {len(number)} digits, "
            f"and a seed has at most {MOST_DIGITS}"
        )
    return int(number)


def _quoted(text: str, most_chars: int = 60) -> str:
    return repr(text if len(text) <= most_chars else f"{text[:most_chars]}…")
