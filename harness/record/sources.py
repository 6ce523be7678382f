"""The source line of a moment, with a few lines around it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.record.failure_schema import SourceLine

_AROUND = 4
_LINE_CHARS = 200


def locate(shown: str) -> Path | None:
    """Return where a file of a catalogue is.

    Args:
        shown: Its path, relative to the directory that holds its package.
    """
    first = shown.split("/", 1)[0]
    try:
        spec = importlib.util.find_spec(first.removesuffix(".py"))
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations:
        base = Path(next(iter(spec.submodule_search_locations))).parent
    elif spec.origin:
        base = Path(spec.origin).parent
    else:
        return None
    path = base / shown
    return path if path.is_file() else None


def from_here(path: Path) -> str:
    """Return a path as a tool that runs in this directory would name it."""
    here = Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else str(path)


def excerpt(path: Path, line: int) -> list[SourceLine]:
    """Return a line with a few around it.

    Args:
        path: The file.
        line: Number of the line, from 1.
    """
    lines = path.read_text(encoding="utf-8", errors="backslashreplace").splitlines()
    first = max(1, line - _AROUND)
    return [
        {"number": number, "text": text[:_LINE_CHARS]}
        for number, text in enumerate(lines[first - 1 : line + _AROUND], start=first)
    ]
