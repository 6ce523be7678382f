"""Copying a world's directory."""

from __future__ import annotations

import os
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from harness.world.snapshot import copy_world


def test_an_open_database_is_copied_with_what_its_log_holds(tmp_path: Path) -> None:
    """Of a database in WAL mode the copy is one complete file; the original keeps working."""
    source = tmp_path / "world"
    source.mkdir()
    with closing(sqlite3.connect(source / "x.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE t (n)")
        db.execute("INSERT INTO t VALUES (1)")
        copy_world(source, tmp_path / "copy")
        db.execute("INSERT INTO t VALUES (2)")
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["x.db"]
    with closing(sqlite3.connect(tmp_path / "copy" / "x.db")) as copied:
        assert copied.execute("SELECT n FROM t").fetchall() == [(1,)]


def test_files_are_copied_and_sockets_left_out(tmp_path: Path) -> None:
    """Folders, files and links are copied as they are; sockets and pipes are not copied."""
    source = tmp_path / "world"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "file").write_bytes(b"content")
    (source / "link").symlink_to("sub/file")
    (source / "folder").symlink_to("sub")
    os.mkfifo(source / "pipe")
    here = os.open(source, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"/proc/self/fd/{here}/s")  # Short, however long the test's path is.
        os.close(here)
        copy_world(source, tmp_path / "copy")
    copy = tmp_path / "copy"
    assert sorted(path.name for path in copy.iterdir()) == ["folder", "link", "sub"]
    assert (copy / "sub" / "file").read_bytes() == b"content"
    assert (copy / "link").readlink() == Path("sub/file")
    assert (copy / "folder").readlink() == Path("sub")


def test_an_existing_destination_is_refused(tmp_path: Path) -> None:
    """A copy never mixes with what was there before."""
    with pytest.raises(FileExistsError):
        copy_world(tmp_path, tmp_path)
