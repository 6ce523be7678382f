"""What a worker does outside of its workspace is noted in its own process."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_BEGIN = """
import os, socket, sqlite3, sys
from harness.processes.watch_outside import watch_outside
inside, outside = sys.argv[1:]
watch_outside(inside, inside + "/notes.txt")
os.chdir(inside)
"""


def _noted(tmp_path: Path, statement: str) -> list[str]:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "there").write_text("x", encoding="utf-8")
    (inside / "link").symlink_to(outside)
    (inside / "own").write_text("x", encoding="utf-8")
    subprocess.run(
        [sys.executable, "-c", _BEGIN + statement, str(inside), str(outside)], check=True
    )
    notes = (inside / "notes.txt").read_text(encoding="utf-8").splitlines()
    return [note.replace(str(outside), "OUTSIDE") for note in notes]


@pytest.mark.parametrize(
    ("statement", "path"),
    [
        ("open(outside + '/new', 'w')", "OUTSIDE/new"),
        ("open('link/new', 'w')", "OUTSIDE/new"),
        ("open('../outside/there', 'a')", "OUTSIDE/there"),
        ("os.open((outside + '/new').encode(), os.O_CREAT | os.O_RDWR)", "OUTSIDE/new"),
        ("os.mkdir(outside + '/new')", "OUTSIDE/new"),
        ("os.rename('own', outside + '/new')", "OUTSIDE/new"),
        ("os.rename(outside + '/there', 'new')", "OUTSIDE/there"),
        ("os.link('own', outside + '/new')", "OUTSIDE/new"),
        ("os.symlink('own', outside + '/new')", "OUTSIDE/new"),
        ("os.remove(outside + '/there')", "OUTSIDE/there"),
        ("os.truncate(outside + '/there', 0)", "OUTSIDE/there"),
        ("sqlite3.connect(outside + '/new')", "OUTSIDE/new"),
        ("socket.socket(socket.AF_UNIX).bind('link/new')", "OUTSIDE/new"),
        ("socket.socket(socket.AF_UNIX).bind('\\0a name')", "@a name"),
    ],
)
def test_what_changes_something_outside_is_noted(tmp_path: Path, statement: str, path: str) -> None:
    """Whatever call makes, changes or removes something outside, by whatever path, is noted."""
    assert _noted(tmp_path, statement) == [path]


@pytest.mark.parametrize(
    "statement",
    [
        "open(outside + '/there')",
        "open('new', 'w')",
        "open(os.devnull, 'w')",
        "os.symlink(outside, 'new')",
        "sqlite3.connect(':memory:')",
        "socket.socket(socket.AF_UNIX).bind('new')",
        "socket.socket().bind(('127.0.0.1', 0))",
        "open(os.open('own', os.O_RDWR), 'r+')",
    ],
)
def test_what_changes_nothing_outside_is_not_noted(tmp_path: Path, statement: str) -> None:
    """Reading, and writing into the workspace, is a worker's own affair."""
    assert _noted(tmp_path, statement) == []


def test_shared_memory_is_noted(tmp_path: Path) -> None:
    """A segment has no audit event of its own; that it is mapped has one."""
    name = f"noted-{tmp_path.name}"
    statement = f"""
from multiprocessing.shared_memory import SharedMemory
made = SharedMemory({name!r}, create=True, size=10)
made.close()
made.unlink()
"""
    assert _noted(tmp_path, statement) == [f"/dev/shm/{name}"]


def test_a_worker_that_has_another_file_at_the_descriptor_keeps_it_whole(tmp_path: Path) -> None:
    """A daemon closes every descriptor; its next file must not be written to."""
    statement = """
os.closerange(3, 100)
other = [open(f"other-{n}", "w") for n in range(20)]
open(outside + "/new", "w")
assert all(os.path.getsize(file.name) == 0 for file in other)
"""
    assert _noted(tmp_path, statement) == []
