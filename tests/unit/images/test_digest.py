"""The digest of what is durable: equal content, equal digest."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from harness_doubles import new_image

from harness.images.digest import image_digest
from harness.images.tree import copy_tree

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.image import Image

ROWS = [(1, "one"), (2, "two")]


def write_database(path: Path, rows: list[tuple[int, str]], mode: str) -> None:
    """Write a database that was closed well."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"PRAGMA journal_mode = {mode}")
        db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, word TEXT)")
        db.executemany("INSERT INTO t VALUES (?, ?)", rows)


def image_with_database(path: Path, rows: list[tuple[int, str]], mode: str = "WAL") -> Image:
    """Make an image with a database at ``worker/sub/x.db``."""
    image = new_image(path)
    (image.worker_dir / "sub").mkdir()
    write_database(image.worker_dir / "sub" / "x.db", rows, mode)
    return image


def image_of_open_database(path: Path, rows: list[tuple[int, str]]) -> Image:
    """Make an image of a database whose rows are all in its log, as a kill leaves it."""
    live, image = new_image(path / "live"), new_image(path / "image")
    (live.worker_dir / "sub").mkdir()
    with closing(sqlite3.connect(live.worker_dir / "sub" / "x.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, word TEXT)")
        db.executemany("INSERT INTO t VALUES (?, ?)", rows)
        copy_tree(live.worker_dir / "sub", image.worker_dir / "sub")
    assert (image.worker_dir / "sub" / "x.db-wal").stat().st_size > 0
    return image


def digest_of(path: Path, files: dict[str, bytes]) -> str:
    """Return the digest of an image with files."""
    image = new_image(path)
    for name, data in files.items():
        file = image.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return image_digest(image)


def test_equal_files_give_an_equal_digest(tmp_path: Path) -> None:
    """The digest does not depend on where the image is or in which order it was written."""
    files = {"worker/a": b"1", "worker/sub/b": b"2", "world/c": b"3"}
    turned = dict(reversed(files.items()))
    assert digest_of(tmp_path / "one", files) == digest_of(tmp_path / "two", turned)


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"worker/a": b"2"},
        {"worker/b": b"1"},
        {"world/a": b"1"},
        {"worker/a": b"1", "worker/b": b""},
        {"worker/a": b"1", "world/b": b""},
    ],
)
def test_any_difference_gives_another_digest(tmp_path: Path, other: dict[str, bytes]) -> None:
    """Only images with equal content are checked once."""
    one = digest_of(tmp_path / "one", {"worker/a": b"1"})
    assert digest_of(tmp_path / "two", other) != one


def test_a_link_is_where_it_leads(tmp_path: Path) -> None:
    """Two links to different files differ, even where the files have equal content."""
    digests = set()
    for name in ("x", "y", "nowhere"):
        image = new_image(tmp_path / name)
        (image.worker_dir / "x").write_text("same")
        (image.worker_dir / "y").write_text("same")
        (image.worker_dir / "link").symlink_to(name)
        digests.add(image_digest(image))
    assert len(digests) == 3


def test_a_link_to_a_folder_is_where_it_leads(tmp_path: Path) -> None:
    """A worker can switch from one version to the next by such a link alone."""
    digests = set()
    for name in ("v1", "v2"):
        image = new_image(tmp_path / name)
        (image.worker_dir / "v1").mkdir()
        (image.worker_dir / "v2").mkdir()
        (image.worker_dir / "current").symlink_to(name)
        digests.add(image_digest(image))
    assert len(digests) == 2


def test_databases_are_compared_by_their_rows(tmp_path: Path) -> None:
    """However its pages were written, a database is what can be read from it."""
    one = image_with_database(tmp_path / "one", ROWS)
    other = image_of_open_database(tmp_path / "two", ROWS)
    third = image_with_database(tmp_path / "three", [*ROWS, (3, "three")])
    with closing(sqlite3.connect(third.worker_dir / "sub" / "x.db")) as db, db:
        db.execute("DELETE FROM t WHERE n = 3")
    files = {(image.worker_dir / "sub" / "x.db").read_bytes() for image in (one, other, third)}
    assert len(files) == 3
    assert len({image_digest(image) for image in (one, other, third)}) == 1


@pytest.mark.parametrize("rows", [[(1, "one")], [(1, "one"), (2, "Two")], [*ROWS, (3, "x")], []])
def test_other_rows_give_another_digest(tmp_path: Path, rows: list[tuple[int, str]]) -> None:
    """One row more, less or different is another state."""
    one = image_with_database(tmp_path / "one", ROWS)
    assert image_digest(one) != image_digest(image_with_database(tmp_path / "two", rows))


def test_another_schema_gives_another_digest(tmp_path: Path) -> None:
    """An index that is missing is a difference too."""
    one, other = (image_with_database(tmp_path / name, ROWS) for name in ("one", "two"))
    with closing(sqlite3.connect(other.worker_dir / "sub" / "x.db")) as db:
        db.execute("CREATE INDEX words ON t (word)")
    assert image_digest(one) != image_digest(other)


def test_what_is_only_in_the_log_counts(tmp_path: Path) -> None:
    """A committed row is durable before the log is moved into the database."""
    whole = image_digest(image_with_database(tmp_path / "whole", ROWS))
    assert image_digest(image_of_open_database(tmp_path / "open", ROWS)) == whole
    assert image_digest(image_of_open_database(tmp_path / "less", ROWS[:1])) != whole


def test_an_interrupted_transaction_does_not_count(tmp_path: Path) -> None:
    """A rollback journal is what a restart will roll back."""
    live = image_with_database(tmp_path / "live", ROWS, "DELETE")
    whole = image_digest(live)
    image = new_image(tmp_path / "image")
    folder = live.worker_dir / "sub"
    with closing(sqlite3.connect(folder / "x.db", isolation_level=None)) as db:
        db.execute("PRAGMA cache_size = 1")
        db.execute("PRAGMA cache_spill = 1")
        db.execute("BEGIN")
        db.executemany("INSERT INTO t VALUES (?, ?)", [(n, "x" * 500) for n in range(3, 200)])
        copy_tree(folder, image.worker_dir / "sub")
    assert (image.worker_dir / "sub" / "x.db-journal").exists()
    size = (image.worker_dir / "sub" / "x.db").stat().st_size
    assert size > 50_000, "the transaction has reached the file"
    assert image_digest(image) == whole


def test_an_image_is_not_changed_by_its_digest(tmp_path: Path) -> None:
    """An image never changes, and SQLite does not write beside it."""
    image = image_of_open_database(tmp_path, ROWS)
    before = {path: path.read_bytes() for path in image.path.rglob("*") if path.is_file()}
    first = image_digest(image)
    after = {path: path.read_bytes() for path in image.path.rglob("*") if path.is_file()}
    assert after == before
    assert image_digest(image) == first


@pytest.mark.parametrize(
    "change",
    [
        "PRAGMA user_version = 1",
        "PRAGMA application_id = 1",
        "CREATE INDEX i ON t (word)",
        "INSERT INTO u VALUES ('x'); DELETE FROM u WHERE rowid = 1",
    ],
)
def test_what_a_program_can_ask_of_a_database_counts(tmp_path: Path, change: str) -> None:
    """A version, an index or the next row number decides what a restarted program does."""
    digests = []
    for number, statements in enumerate(("", change)):
        image = image_with_database(tmp_path / f"{number}", ROWS)
        with closing(sqlite3.connect(image.worker_dir / "sub" / "x.db")) as db:
            db.executescript(
                f"CREATE TABLE u (word TEXT); INSERT INTO u VALUES ('x'); {statements}"
            )
        digests.append(image_digest(image))
    assert digests[0] != digests[1]


def test_a_damaged_database_counts_by_its_bytes(tmp_path: Path) -> None:
    """A database that was cut in the middle of a copy cannot be read, and is part of the state."""
    digests = []
    for cut in (600, 700):
        image = image_with_database(tmp_path / f"{cut}", ROWS, "DELETE")
        os.truncate(image.worker_dir / "sub" / "x.db", cut)
        digests.append(image_digest(image))
    assert digests[0] != digests[1]


def test_a_database_with_an_impossible_name_counts_by_its_bytes(tmp_path: Path) -> None:
    """A worker can write any name into the schema, and no statement can have it."""
    digests = []
    for name in (b"named\xffso", b"named\xfeso"):
        image = image_with_database(tmp_path / name.hex(), ROWS, "DELETE")
        path = image.worker_dir / "sub" / "x.db"
        with closing(sqlite3.connect(path)) as database:
            database.execute("CREATE TABLE named_so (x)")
        path.write_bytes(path.read_bytes().replace(b"named_so", name))
        digests.append(image_digest(image))
    assert digests[0] != digests[1]


def test_sockets_and_pipes_count(tmp_path: Path) -> None:
    """The file of a socket that a killed program leaves can keep the next one from its start."""
    without, with_pipe = new_image(tmp_path / "without"), new_image(tmp_path / "with")
    os.mkfifo(with_pipe.worker_dir / "pipe")
    assert image_digest(without) != image_digest(with_pipe)
