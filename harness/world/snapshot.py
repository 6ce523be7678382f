"""A copy of the world's directory that can be opened like the original."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path


def copy_world(world_dir: Path, destination: Path) -> None:
    """Copy a directory with databases that are open in this process.

    Nobody may be inside a write transaction. A database in WAL mode is copied with SQLite's backup
    interface, for two reasons: the copy is one file at one moment, whatever its log holds; and
    opening and closing the database as a plain file would drop the POSIX locks of the connections
    that this process has on it (sqlite.org/howtocorrupt.html, 2.2). Everything else is copied as
    it is; sockets, pipes and devices are left out.

    Args:
        world_dir: What to copy.
        destination: Where to; it must not exist, its parent must.

    Raises:
        OSError: A file cannot be read or written, or the destination exists.
        sqlite3.Error: A database cannot be read.
    """
    destination.mkdir()
    for folder, subfolders, names in os.walk(world_dir):
        source = Path(folder)
        target = destination / source.relative_to(world_dir)
        for name in subfolders:
            if (source / name).is_symlink():
                shutil.copy2(source / name, target / name, follow_symlinks=False)
            else:
                (target / name).mkdir()
        _copy_files(source, target, names)


def _copy_files(source: Path, target: Path, names: list[str]) -> None:
    # A log beside a file says that the file is a database in WAL mode and open.
    databases = {name for name in names if f"{name}-wal" in names}
    beside = {name + suffix for name in databases for suffix in ("-wal", "-shm")}
    for name in sorted(set(names) - beside):
        if name in databases:
            _back_up(source / name, target / name)
        elif stat.S_IFMT((source / name).lstat().st_mode) in (stat.S_IFREG, stat.S_IFLNK):
            shutil.copy2(source / name, target / name, follow_symlinks=False)


def _back_up(source: Path, target: Path) -> None:
    uri = f"{source.absolute().as_uri()}?mode=ro"
    with (
        closing(sqlite3.connect(uri, uri=True)) as original,
        closing(sqlite3.connect(target)) as copy,
    ):
        copy.execute("PRAGMA synchronous = OFF")
        original.backup(copy)
