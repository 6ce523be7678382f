"""Directories, links, pipes, sockets and devices where a file or a tree of the worker belongs."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import socket
import stat
import zipfile
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from worker_under_test.adapters.local_file_space import LocalFileSpace
from worker_under_test.adapters.local_tree_space import LocalTreeSpace
from worker_under_test.adapters.system_clock import SystemClock
from worker_under_test.capabilities.export import Export
from worker_under_test.capabilities.unpack import Unpack
from worker_under_test.domain.artifact import ArtifactSet
from worker_under_test.domain.command import Command
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.ports.file_space import FoundFile, Leftover, Place

if TYPE_CHECKING:
    from pathlib import Path

    from worker_under_test.domain.json_value import JsonObject
    from worker_under_test.domain.progress import Checkpoint, Progress
    from worker_under_test.ports.remote import Reply

FILES = ArtifactSet("c1", "attempt-1")
FINAL, TEMPORARY = "a.txt", FILES.temporary_name("a.txt")
KINDS = (
    "a directory",
    "a directory that may not be written to",
    "a pipe",
    "a socket",
    "a device",
    "a link to a file",
    "a link to a directory",
    "a link to a device",
    "a link to nothing",
)


class Silent:
    """A `ProgressReporter` that keeps nothing."""

    attempt_id = FILES.attempt_id
    cancelled = False
    checkpoint: Checkpoint | None = None

    async def __call__(self, progress: Progress, evidence: JsonObject | None = None) -> None:
        """Take a report."""


class NoRemote:
    """A `Remote` that nothing may use."""

    async def request(self, method: str, path: str, **given: object) -> Reply:
        """Refuse to be used."""
        raise AssertionError(path)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Give a directory with a file, outside of the worker's, to which links may lead."""
    directory = tmp_path / "outside"
    directory.mkdir()
    (directory / "kept").write_text("kept", encoding="utf-8")
    return directory


def put(path: Path, kind: str, outside: Path) -> None:
    """Put something of a kind at a path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    match kind:
        case "a pipe":
            os.mkfifo(path)
        case "a socket":
            # By a descriptor, for the path of a socket takes 107 bytes.
            folder = os.open(path.parent, os.O_PATH)
            with closing(socket.socket(socket.AF_UNIX)) as listening:
                listening.bind(f"/proc/self/fd/{folder}/{path.name}")
            os.close(folder)
        case "a device":
            try:
                os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))  # /dev/zero
            except PermissionError:
                pytest.skip("only a privileged caller may make a device")
        case "a link to a file":
            path.symlink_to(outside / "kept")
        case "a link to a directory":
            path.symlink_to(outside)
        case "a link to a device":
            path.symlink_to("/dev/zero")
        case "a link to nothing":
            path.symlink_to(outside / "nothing")
        case _:
            path.mkdir()
            (path / "in it").touch()
            (path / "out").symlink_to(outside)
            if "may not" in kind:
                path.chmod(0o500)


def untouched(outside: Path) -> bool:
    """Tell whether nothing happened outside."""
    (only,) = outside.iterdir()
    return only.read_text(encoding="utf-8") == "kept"


@pytest.mark.requirement("INV-12", "FIL-02", "FIL-06")
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_not_found(tmp_path: Path, outside: Path, kind: str) -> None:
    """Only files count, at final and temporary paths; they are found beside the rest."""
    directory = tmp_path / "files" / FILES.directory
    put(directory / FINAL, kind, outside)
    put(directory / TEMPORARY, kind, outside)
    (directory / "b.txt").write_bytes(b"b")

    async def run() -> None:
        space = LocalFileSpace(tmp_path / "files")
        async with asyncio.timeout(5):
            found = await space.find(FILES)
            assert await space.read_temp(FILES, "a.txt", 0, 10) == b""
        assert found == [FoundFile("b.txt", Place.FINAL, 1, hashlib.sha256(b"b").hexdigest())]

    asyncio.run(run())
    assert untouched(outside)


@pytest.mark.requirement("INV-12", "FIL-02", "FIL-03", "FIL-06")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", [FINAL, TEMPORARY, FILES.temporary_name("other")])
def test_a_file_takes_the_place_of_what_is_none(
    tmp_path: Path, outside: Path, place: str, kind: str
) -> None:
    """The file stands whole at its final path, and nothing else is left."""
    put(tmp_path / "files" / FILES.directory / place, kind, outside)
    parts: JsonObject = {"name": "x", "parts": [{"name": "a.txt", "text": "text"}]}

    async def run() -> None:
        async with asyncio.timeout(5):
            await Export(LocalFileSpace(tmp_path / "files")).execute(
                Command("c1", "export", 1, parts), Silent()
            )

    asyncio.run(run())
    (only,) = (tmp_path / "files" / FILES.directory).iterdir()
    assert (only.name, only.is_symlink(), only.read_bytes()) == (FINAL, False, b"text")
    assert untouched(outside)


@pytest.mark.requirement("REC-05", "REC-07", "INV-12")
@pytest.mark.parametrize("kind", KINDS)
def test_a_piece_is_not_written_through_what_is_no_file(
    tmp_path: Path, outside: Path, kind: str
) -> None:
    """A transfer that goes on begins a file of its own."""
    temporary = tmp_path / "files" / FILES.directory / TEMPORARY
    put(temporary, kind, outside)

    async def run() -> None:
        async with asyncio.timeout(5):
            await LocalFileSpace(tmp_path / "files").extend_temp(FILES, "a.txt", 0, b"piece")

    asyncio.run(run())
    assert temporary.read_bytes() == b"piece"
    assert not temporary.is_symlink()
    assert untouched(outside)


@pytest.mark.requirement("CLN-01", "CLN-03", "INV-12", "FIL-09")
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_over_and_no_file_is_removed(tmp_path: Path, outside: Path, kind: str) -> None:
    """A clean-up and a discard remove it, and a second time changes nothing."""
    directory = tmp_path / "files" / FILES.directory
    put(directory / TEMPORARY, kind, outside)
    put(directory / FINAL, kind, outside)

    async def run() -> None:
        space = LocalFileSpace(tmp_path / "files")
        assert await space.leftovers() == [Leftover("c1", TEMPORARY)]
        for _ in range(2):
            await space.remove(Leftover("c1", TEMPORARY))
            assert [path.name for path in directory.iterdir()] == [FINAL]
        for _ in range(2):
            await space.discard(FILES)
            assert not directory.exists()

    asyncio.run(run())
    assert untouched(outside)


NO_DIRECTORIES = [kind for kind in KINDS if not kind.startswith("a directory")]


@pytest.mark.requirement("CLN-01", "CLN-03", "INV-12", "FIL-02")
@pytest.mark.parametrize("kind", NO_DIRECTORIES)
def test_a_set_has_nothing_where_its_directory_is_none(
    tmp_path: Path, outside: Path, kind: str
) -> None:
    """What lies behind a link is not the set's, nor cleaned up."""
    for name in (FINAL, TEMPORARY):
        (outside / name).write_bytes(b"not ours")
    put(tmp_path / "files" / FILES.directory, kind, outside)

    async def run() -> None:
        space = LocalFileSpace(tmp_path / "files")
        trees = LocalTreeSpace(tmp_path / "files", tmp_path / "inputs")
        async with asyncio.timeout(5):
            assert await space.find(FILES) == []
            assert await space.read_temp(FILES, "a.txt", 0, 10) == b""
            assert await space.leftovers() == []
            await space.remove(Leftover("c1", TEMPORARY))
            assert await trees.find(FILES) is None
            await space.extend_temp(FILES, "a.txt", 0, b"piece")
            await space.publish(FILES, ["a.txt"])
            await trees.discard(FILES)

    asyncio.run(run())
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == {
        "kept": b"kept",
        FINAL: b"not ours",
        TEMPORARY: b"not ours",
    }


@pytest.mark.requirement("ZIP-03", "INV-12", "FIL-02", "FIL-06")
@pytest.mark.parametrize("kind", NO_DIRECTORIES)
def test_a_directory_takes_the_place_of_what_is_none(
    tmp_path: Path, outside: Path, kind: str
) -> None:
    """A set's own directory is made, and no link is followed."""
    directory = tmp_path / "files" / FILES.directory
    put(directory, kind, outside)
    asyncio.run(LocalFileSpace(tmp_path / "files").write_temp(FILES, "a.txt", b"text"))
    assert not directory.is_symlink()
    assert (directory / TEMPORARY).read_bytes() == b"text"
    (directory / TEMPORARY).unlink()
    directory.rmdir()
    put(directory, kind, outside)
    unpacked(tmp_path)
    assert not directory.is_symlink()
    assert [path.name for path in directory.iterdir()] == ["tree"]
    assert untouched(outside)


ENTRIES = {"a.txt": b"alpha", "d/b.txt": b"beta"}


def unpacked(root: Path) -> None:
    """Unpack the archive."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as made:
        for name, data in ENTRIES.items():
            made.writestr(zipfile.ZipInfo(name), data)
    (root / "inputs").mkdir(exist_ok=True)
    (root / "inputs" / "good.zip").write_bytes(held.getvalue())
    trees = LocalTreeSpace(root / "files", root / "inputs")

    async def run() -> None:
        async with asyncio.timeout(5):
            command = Command("c1", "unpack", 1, {"input": "good.zip"})
            await Unpack(trees, NoRemote(), SystemClock()).execute(command, Silent())

    asyncio.run(run())


@pytest.mark.requirement("ZIP-03", "ZIP-07", "INV-12")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["tree", FILES.temporary_name("tree"), "tree/a.txt", "tree/d"])
def test_a_tree_takes_the_place_of_what_is_not_it(
    tmp_path: Path, outside: Path, place: str, kind: str
) -> None:
    """Whatever stands in its place, its temporary place, or within it, gives way."""
    put(tmp_path / "files" / FILES.directory / place, kind, outside)
    unpacked(tmp_path)
    directory = tmp_path / "files" / FILES.directory
    assert [path.name for path in directory.iterdir()] == ["tree"]
    files = {p.relative_to(directory / "tree").as_posix(): p for p in directory.rglob("*.txt")}
    assert {name: path.read_bytes() for name, path in files.items()} == ENTRIES
    assert not any(path.is_symlink() for path in directory.rglob("*"))
    assert untouched(outside)


@pytest.mark.requirement("ZIP-04", "ATT-08")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "a link to a file"])
def test_what_is_no_file_is_no_input(tmp_path: Path, outside: Path, kind: str) -> None:
    """It is refused clearly; nobody waits for a pipe or reads a device to its end."""
    put(tmp_path / "inputs" / "bad.zip", kind, outside)
    trees = LocalTreeSpace(tmp_path / "files", tmp_path / "inputs")

    async def run() -> None:
        async with asyncio.timeout(5):
            command = Command("c1", "unpack", 1, {"input": "bad.zip"})
            with pytest.raises(DomainError, match="there is no input") as refusal:
                await Unpack(trees, NoRemote(), SystemClock()).execute(command, Silent())
            assert refusal.value.kind is Kind.NOT_FOUND

    asyncio.run(run())
    assert not (tmp_path / "files").exists()
