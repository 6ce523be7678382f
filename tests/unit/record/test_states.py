"""What is read from crash images: files, tables, and how they differ."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from harness.record.states import Held, read_held, state

if TYPE_CHECKING:
    from pathlib import Path


def image(path: Path, statements: str = "", **files: str) -> Path:
    """Make an image."""
    (path / "worker").mkdir(parents=True)
    (path / "world").mkdir()
    for name, text in files.items():
        (path / "worker" / name).write_text(text, encoding="utf-8")
    if statements:
        with closing(sqlite3.connect(path / "worker" / "w.db")) as database:
            database.executescript(statements)
    return path


TABLE = "CREATE TABLE inbox (id TEXT PRIMARY KEY, state TEXT);"


def test_rows_are_compared_by_their_key(tmp_path: Path) -> None:
    """Rows are shown as added, changed, removed or the same."""
    before = read_held(
        image(
            tmp_path / "a", f"{TABLE} INSERT INTO inbox VALUES ('a', '1'), ('b', '1'), ('c', '1')"
        )
    )
    now = read_held(
        image(
            tmp_path / "b", f"{TABLE} INSERT INTO inbox VALUES ('a', '1'), ('b', '2'), ('d', '1')"
        )
    )
    (table,) = state(2, "after recovery", before, now)["tables"]
    assert {row["cells"][0]: row["change"] for row in table["rows"]} == {
        "a": "same",
        "b": "changed",
        "c": "removed",
        "d": "added",
    }
    assert [row["before"] for row in table["rows"] if row["before"]] == [["b", "1"]]
    assert table["total"] == 3


def test_rows_without_a_key_are_counted(tmp_path: Path) -> None:
    """Two equal rows of a table without a key are two rows."""
    create = "CREATE TABLE log (line TEXT);"
    before = read_held(image(tmp_path / "a", f"{create} INSERT INTO log VALUES ('x')"))
    now = read_held(image(tmp_path / "b", f"{create} INSERT INTO log VALUES ('x'), ('x')"))
    (table,) = state(1, "", before, now)["tables"]
    assert sorted(row["change"] for row in table["rows"]) == ["added", "same"]


def test_changes_are_shown_before_the_rest(tmp_path: Path) -> None:
    """A large table is cut, its changes are not what is cut, and the cut is said."""
    many = "".join(f"INSERT INTO inbox VALUES ('{n:04}', '1');" for n in range(300))
    before = read_held(image(tmp_path / "a", TABLE + many))
    now = read_held(
        image(tmp_path / "b", f"{TABLE}{many}UPDATE inbox SET state='2' WHERE id='0299'")
    )
    (table,) = state(1, "", before, now)["tables"]
    assert [row["cells"] for row in table["rows"] if row["change"] == "changed"] == [["0299", "2"]]
    assert len(table["rows"]) < 50
    assert table["left_out"] == 300 - len(table["rows"])


def test_files_have_checksums_and_changes(tmp_path: Path) -> None:
    """Files are shown with checksums; names and contents may be anything."""
    before = read_held(image(tmp_path / "a", note="one", old="x"))
    later = image(tmp_path / "b", note="two")
    (later / "worker" / os.fsdecode(b"bad-\xff")).write_bytes(b"\x00")
    (later / "worker" / "link").symlink_to("/nowhere")
    now = read_held(later)
    found = {row["path"]: row["change"] for row in state(1, "", before, now)["files"]}
    assert found == {
        "worker/bad-\udcff": "added",
        "worker/link": "added",
        "worker/note": "changed",
        "worker/old": "removed",
    }
    assert now.files["worker/link"][1] == "link to /nowhere"
    assert now.files["worker/note"][1].startswith("sha256:")


def test_torn_database_is_said_not_raised(tmp_path: Path) -> None:
    """A crash image may hold a torn database; the report says so."""
    broken = image(tmp_path / "a")
    (broken / "worker" / "w.db").write_bytes(b"SQLite format 3\x00" + b"\xff" * 500)
    held = read_held(broken)
    assert held.files["worker/w.db"][1].startswith("not readable")
    assert state(1, "", Held(), held)["tables"] == []


def test_hostile_table_names_and_cells(tmp_path: Path) -> None:
    """Names with quotes, blobs and text that is no UTF-8 are read like any other."""
    held = read_held(
        image(
            tmp_path / "a",
            'CREATE TABLE "x""; DROP TABLE y" ("a b" BLOB, c TEXT);'
            "INSERT INTO \"x\"\"; DROP TABLE y\" VALUES (x'00ff', CAST(x'ff41' AS TEXT))",
        )
    )
    (table,) = state(1, "", Held(), held)["tables"]
    assert table["columns"] == ["a b", "c"]
    assert table["rows"][0]["cells"][0].startswith("2 bytes, sha256 ")
    assert table["rows"][0]["cells"][1] == "\\xffA"
