"""The code blocks of a document, and the notes that stand before them.

A note is an HTML comment right before a block, ``<!-- key: value; key: value -->``:

- ``file: NAME``: the block is saved under this name (else under one of its own);
- ``replaces: NAME``: it takes the place of this function or class at the top of the file;
- ``appended``: it is put at the end of the file;
- ``given: DOCUMENT FILE``: before the block, the first content that another document has for a file
  is saved;
- ``exits: CODE``: the exit code of the last command, if it is not 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]

_NOTE = re.compile(r"<!--(.*)-->", re.DOTALL)
_KEYS = {"file", "replaces", "appended", "given", "exits"}


class DocumentError(Exception):
    """A document has something that its test does not understand."""


@dataclass(frozen=True)
class Block:
    """A code block.

    Attributes:
        document: Path of the document, from the root of the repository.
        line: Where the block begins, from 1.
        kind: The language that it names; ``"none"`` without one, ``"indented"`` without a fence.
        text: What it holds.
        notes: What the note before it says.
    """

    document: str
    line: int
    kind: str
    text: str
    notes: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"

    @property
    def key(self) -> tuple[str, str]:
        """What names the block in a list: its document and its first line."""
        return self.document, self.text.partition("\n")[0]


def documents() -> tuple[str, ...]:
    """Return the documents whose blocks are run, as paths from the root of the repository."""
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    return tuple(path.relative_to(ROOT).as_posix() for path in paths)


def blocks_of(document: str) -> tuple[Block, ...]:
    """Return the blocks of a document.

    Raises:
        DocumentError: A note says something that nobody understands.
    """
    return blocks_in((ROOT / document).read_text(encoding="utf-8"), document)


def blocks_in(text: str, document: str) -> tuple[Block, ...]:
    """Return the blocks of a text.

    Raises:
        DocumentError: A note says something that nobody understands.
    """
    found = []
    before = ""
    for token in MarkdownIt("commonmark").parse(text):
        if token.type in ("fence", "code_block"):
            line = token.map[0] + 1 if token.map else 0
            fenced = token.type == "fence"
            kind = (token.info.strip() or "none") if fenced else "indented"
            place = f"{document}:{line}"
            found.append(Block(document, line, kind, token.content, _notes(before, place)))
        before = token.content if token.type == "html_block" else ""
    return tuple(found)


def _notes(html: str, place: str) -> dict[str, str]:
    match = _NOTE.fullmatch(html.strip())
    if match is None:
        return {}
    notes = {}
    for note in match.group(1).split(";"):
        key, _, value = (part.strip() for part in note.partition(":"))
        if key not in _KEYS:
            raise DocumentError(f"{place}: unknown note {key!r}; known: {sorted(_KEYS)}")
        notes[key] = value
    return notes
