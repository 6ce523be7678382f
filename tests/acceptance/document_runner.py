"""Runs the blocks of a document, in their order, in one folder."""

from __future__ import annotations

import ast
import difflib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from document_blocks import DocumentError, blocks_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from document_blocks import Block

DEADLINE_S = 240
_PLACEHOLDER = "..."


class DocumentRunner:
    """Runs blocks in a folder, as a reader would who follows the document by the letter.

    Args:
        folder: An empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._unnamed = 0

    def run(self, block: Block) -> None:
        """Run a block.

        Raises:
            DocumentError: It does not do what the document says, or is of an unknown kind.
        """
        if "given" in block.notes:
            self._give(block)
        match block.kind:
            case "python":
                self._expect(block, [sys.executable, self._saved(block)])
            case "toml":
                tomllib.loads(self._saved(block).read_text(encoding="utf-8"))
            case "sh":
                self._expect(block, ["bash", "-euc", block.text])
            case "console":
                self._converse(block)
            case _:
                raise DocumentError(f"{block}: nobody knows how to run a block of {block.kind!r}")

    def _give(self, block: Block) -> None:
        document, name = block.notes["given"].split()
        first = next(b for b in blocks_of(document) if b.notes.get("file") == name)
        (self._folder / name).write_text(first.text, encoding="utf-8")

    def _saved(self, block: Block) -> Path:
        """Save a block as its note says; return the file."""
        self._unnamed += "file" not in block.notes
        file = self._folder / block.notes.get("file", f"block_{self._unnamed}.{block.kind}")
        text = block.text
        if "replaces" in block.notes:
            text = _replaced(file.read_text(encoding="utf-8"), block)
        elif "appended" in block.notes:
            text = f"{file.read_text(encoding='utf-8')}\n\n{text}"
        file.write_text(text, encoding="utf-8")
        return file

    def _converse(self, block: Block) -> None:
        exchanges = list(_exchanges(block))
        for index, (command, shown) in enumerate(exchanges, 1):
            last = index == len(exchanges)
            output = self._expect(block, ["bash", "-c", command], ends=last)
            if not matches(output, shown):
                difference = difflib.unified_diff(
                    _lines(shown), _lines(output), "shown", "printed", lineterm="", n=99
                )
                raise DocumentError("\n".join([f"{block}: $ {command}", *difference]))

    def _expect(self, block: Block, command: list[str | Path], *, ends: bool = True) -> str:
        """Run a command and return its output; if it ends the block, with the block's exit code."""
        done = subprocess.run(
            command,
            cwd=self._folder,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
        wanted = int(block.notes.get("exits", "0")) if ends else 0
        if done.returncode != wanted:
            raise DocumentError(
                f"{block}: exit code {done.returncode}, not {wanted}: {command}\n{done.stdout}"
            )
        return done.stdout


def matches(output: str, shown: str) -> bool:
    """Tell whether an output is the one that a document shows.

    Args:
        output: What was printed.
        shown: What should be. ``...`` in a line stands for anything in that line, and as a line of
            its own for any number of lines. Blanks at the ends of lines do not count.
    """
    pattern = "".join(
        r"(?:.*\n)*?"
        if line.strip() == _PLACEHOLDER
        else ".*".join(re.escape(part) for part in line.split(_PLACEHOLDER)) + r"\n"
        for line in _lines(shown)
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _lines(output))) is not None


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


def _exchanges(block: Block) -> Iterator[tuple[str, str]]:
    """Give each command of a console block and what it should print."""
    before, *exchanges = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    if before or not exchanges:
        raise DocumentError(f"{block}: a console block begins with '$ ' and a command")
    for exchange in exchanges:
        command, _, shown = exchange.partition("\n")
        yield command, shown


def _replaced(source: str, block: Block) -> str:
    """Put a block in the place of a function or class at the top of a file."""
    lines = source.splitlines(keepends=True)
    for node in ast.parse(source).body:
        if (
            isinstance(node, ast.FunctionDef | ast.ClassDef)
            and node.name == block.notes["replaces"]
        ):
            lines[node.lineno - 1 : node.end_lineno] = [block.text]
            return "".join(lines)
    raise DocumentError(f"{block}: there is no {block.notes['replaces']!r} to replace")


def _environment() -> dict[str, str]:
    """Return an environment like a reader's: with the command, and without a CI system."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GITHUB_", "CRASH_HARNESS_", "PYTEST_"))
    }
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "NO_COLOR": "1",
        # A shell that a command opens ends at once, for it has nothing to read.
        "SHELL": "/bin/sh",
    }
