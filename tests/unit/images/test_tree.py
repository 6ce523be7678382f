"""Copies of trees that a worker made, and their deletion: every kind of entry, any depth."""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.images.deletion import remove_tree
from harness.images.digest import PARTS
from harness.images.metadata import metadata_digest
from harness.images.tree import (
    MAX_PATH_BYTES,
    TooLargeError,
    UnimageableError,
    copy_tree,
    move_tree,
    room_bytes,
)
from harness.images.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

LONG_AGO_NS = 1_000_000_000


def bind(path: Path) -> None:
    """Leave the file of a socket; by a descriptor, for the path of a socket takes 107 bytes."""
    folder = os.open(path.parent, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"/proc/self/fd/{folder}/{path.name}")
    os.close(folder)


def second_name(path: Path) -> None:
    """Give a file two names."""
    path.write_text("one")
    path.with_name("another-name").hardlink_to(path)


def holes(path: Path) -> None:
    """Make a file that is mostly holes."""
    with path.open("wb") as file:
        file.seek(1 << 40)
        file.write(b"end")


def sealed(path: Path) -> None:
    """Make a directory that nobody may write to or list."""
    path.mkdir()
    (path / "inside").write_text("x")
    path.chmod(0)


def long_ago(path: Path) -> None:
    """Make a file and say that it is old."""
    path.touch()
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))


def marked(path: Path) -> None:
    """Make a file with an extended attribute, where the file system has them."""
    path.touch()
    try:
        os.setxattr(path, "user.mark", b"done")
    except OSError as error:
        pytest.skip(f"no extended attributes here: {error}")


KINDS: dict[str, Callable[[Path], object]] = {
    "file": lambda path: path.write_text("x"),
    "empty directory": lambda path: path.mkdir(),
    "link": lambda path: path.symlink_to("nowhere"),
    "pipe": lambda path: os.mkfifo(path, 0o640),
    "socket": bind,
    "second name": second_name,
    "holes": holes,
    "mode": lambda path: path.touch(0o440),
    "unreadable": lambda path: path.touch(0),
    "sealed directory": sealed,
    "time": long_ago,
    "attribute": marked,
}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Give a workspace in which a worker has left two files, one after the other."""
    made = Workspace(tmp_path / "w")
    for name in ("first", "second"):
        (made.worker_dir / name).write_text(name)
    return made


def seen(root: Path, like: Workspace) -> str:
    """Return the digest of what can be seen of a worker's directory."""
    return metadata_digest(root, ["worker"], like.since_ns, links_into=like.path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_shows_a_program_what_the_original_shows(workspace: Workspace, kind: str) -> None:
    """Modes, times, links, pipes and sockets were dropped, so an oracle saw those of the copy."""
    KINDS[kind](workspace.worker_dir / "entry")
    before = seen(workspace.path, workspace)
    copy_tree(workspace.worker_dir, workspace.path / "images" / "worker")
    assert seen(workspace.path / "images", workspace) == before
    assert seen(workspace.path, workspace) == before, "what was copied stays as it was"


@pytest.mark.parametrize("kind", KINDS)
def test_a_tree_that_is_moved_to_another_disk_arrives_whole(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """What a failure left goes from memory to the disk; a pipe in it ended the whole run."""
    KINDS[kind](workspace.worker_dir / "entry")
    before = seen(workspace.path, workspace)
    kept = workspace.path / "images" / "worker"
    kept.parent.mkdir(exist_ok=True)
    rename = os.rename

    def within_a_disk(source: str | Path, destination: str | Path) -> None:
        if kept in (source, destination):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        rename(source, destination)

    monkeypatch.setattr(os, "rename", within_a_disk)
    move_tree(workspace.worker_dir, kept)
    assert seen(kept.parent, workspace) == before
    assert not workspace.worker_dir.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_two_trees_that_differ_in_one_entry_are_seen_to_differ(
    workspace: Workspace, kind: str
) -> None:
    """A left-over socket, a mode or a time can be all that a restart stumbles over."""
    (workspace.worker_dir / "entry").write_text("y")
    before = seen(workspace.path, workspace)
    remove_tree(workspace.worker_dir / "entry")
    KINDS[kind](workspace.worker_dir / "entry")
    if kind != "file":
        assert seen(workspace.path, workspace) != before


def test_which_file_is_newer_can_be_seen(workspace: Workspace) -> None:
    """Times of equal runs are never equal; which of two files is newer is the same in both."""
    names = [workspace.worker_dir / name for name in ("first", "second")]

    def stamp(*times: int) -> str:
        for name, time in zip(names, times, strict=True):
            os.utime(name, ns=(time, workspace.since_ns + time))
        os.utime(workspace.worker_dir, ns=(0, workspace.since_ns + 1_000))
        return seen(workspace.path, workspace)

    assert stamp(1, 2) == stamp(3, 7) != stamp(7, 3)
    assert stamp(1, 1) != stamp(1, 2)


def test_an_absolute_link_leads_into_the_image(workspace: Workspace) -> None:
    """It led into the live directory, where the recovery had meanwhile mended what was torn."""
    (workspace.worker_dir / "folder").mkdir()
    (workspace.worker_dir / "folder" / "latest").symlink_to(workspace.worker_dir / "first")
    (workspace.worker_dir / "ledger").symlink_to(workspace.world_dir)
    for make in (workspace.copy_to, workspace.move_to):
        image = workspace.new_image(make.__name__)
        make(image)
        for link in ("folder/latest", "ledger"):
            target = (image.worker_dir / link).resolve()
            assert target.is_relative_to(image.path), target


def test_what_lies_around_the_worker_belongs_to_the_image_if_it_is_used(
    workspace: Workspace,
) -> None:
    """A lock in a temporary directory or in the home directory outlives a process."""
    (workspace.path / "tmp" / "lock").write_text("1")
    image = workspace.new_image("1-end")
    workspace.copy_to(image)
    assert sorted(path.name for path in image.path.iterdir()) == ["tmp", "worker", "world"]


def test_a_tree_too_deep_for_an_image_is_said_and_deleted(workspace: Workspace) -> None:
    """1,200 levels ended the run, and every later one on the machine."""
    here = os.open(workspace.worker_dir, os.O_RDONLY)
    for _ in range(MAX_PATH_BYTES):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    with pytest.raises(UnimageableError, match="no image is made of it"):
        workspace.copy_to(workspace.new_image("1-end"))
    workspace.remove()
    assert not workspace.path.exists()


def test_a_tree_is_deleted_whatever_its_modes(workspace: Workspace) -> None:
    """A worker may forbid to list, enter or change its directories."""
    for number in range(3):
        below = workspace.worker_dir / f"{number}" / "a" / "b"
        below.mkdir(parents=True)
        (below / "file").touch(0)
        for folder in (below, below.parent, below.parent.parent):
            folder.chmod(number)
    workspace.remove()
    assert not workspace.path.exists()


def test_deleting_follows_no_link(workspace: Workspace, tmp_path: Path) -> None:
    """What a link leads to is somebody else's."""
    (tmp_path / "theirs").mkdir(0o755)
    (tmp_path / "theirs" / "file").touch()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "theirs")
    (workspace.worker_dir / "link").symlink_to(tmp_path / "theirs")
    remove_tree(link)
    workspace.remove()
    assert (tmp_path / "theirs" / "file").exists()
    assert stat.S_IMODE((tmp_path / "theirs").stat().st_mode) == 0o755
    assert not link.is_symlink()


@pytest.mark.parametrize("instead", [lambda _: None, lambda path: path.touch()])
def test_a_worker_without_its_directory_is_said(
    workspace: Workspace, instead: Callable[[Path], None]
) -> None:
    """A worker may delete its directory, or put a file in its place."""
    remove_tree(workspace.worker_dir)
    instead(workspace.worker_dir)
    with pytest.raises(UnimageableError, match="any more"):
        workspace.copy_to(workspace.new_image("1-end"))


def test_a_workspace_is_new_all_at_once(tmp_path: Path) -> None:
    """Its directories were as old as they were made one after the other, by luck of the clock."""
    made = Workspace(tmp_path / "w")
    times = {(made.path / part).stat().st_mtime_ns for part in PARTS}
    assert times == {made.since_ns}


def test_deleting_goes_on_where_somebody_else_deletes_and_writes(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process at its end removes its own files, or makes one more."""
    unlink, rmdir = os.unlink, os.rmdir
    late = workspace.worker_dir / "late"

    def race(path: str, *, dir_fd: int | None = None) -> None:
        unlink(path, dir_fd=dir_fd)
        unlink(path, dir_fd=dir_fd)

    def fill(path: str, *, dir_fd: int | None = None) -> None:
        if path == workspace.worker_dir.name and not filled:
            filled.append(path)
            late.touch()
        rmdir(path, dir_fd=dir_fd)

    filled: list[str] = []
    monkeypatch.setattr(os, "unlink", race)
    monkeypatch.setattr(os, "rmdir", fill)
    workspace.remove()
    assert filled
    assert not workspace.path.exists()


def test_deleting_does_not_follow_what_is_moved_away(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that moves the directory that is being emptied elsewhere makes nothing there go."""
    inner = workspace.worker_dir / "inner"
    (inner / "inmost").mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "inner").mkdir(parents=True)
    (elsewhere / "kept").mkdir()
    rmdir = os.rmdir

    def move(path: str, *, dir_fd: int | None = None) -> None:
        rmdir(path, dir_fd=dir_fd)
        if path == "inmost":
            inner.rename(elsewhere / "moved")

    monkeypatch.setattr(os, "rmdir", move)
    workspace.remove()
    assert not workspace.path.exists()
    assert sorted(path.name for path in elsewhere.iterdir()) == ["inner", "kept", "moved"]


def test_a_tree_is_deleted_at_any_depth_and_with_any_mode(tmp_path: Path) -> None:
    """More levels than Python can call itself, each closed to its owner, are deleted."""
    tree = tmp_path / "tree"
    tree.mkdir()
    fd = os.open(tree, os.O_RDONLY)
    for _ in range(sys.getrecursionlimit() + 100):
        os.mkdir("d", dir_fd=fd)
        inner = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.fchmod(fd, 0)
        os.close(fd)
        fd = inner
    os.close(fd)
    remove_tree(tree)
    assert not tree.exists()


def test_a_tree_that_takes_too_much_room_is_not_copied(tmp_path: Path) -> None:
    """Room counts, and not length; a file with several names counts once."""
    tree = tmp_path / "tree"
    (tree / "inner").mkdir(parents=True)
    (tree / "inner" / "file").write_bytes(b"x" * (1 << 20))
    os.link(tree / "inner" / "file", tree / "again")
    with (tree / "hole").open("wb") as file:
        file.truncate(1 << 30)
    taken = copy_tree(tree, tmp_path / "copy", most_bytes=3 << 19)
    assert 1 << 20 <= taken <= 3 << 19
    assert 1 << 20 <= room_bytes(tree, 1 << 30) <= 3 << 19
    with pytest.raises(TooLargeError, match="takes more than 524,288 bytes"):
        copy_tree(tree, tmp_path / "no-copy", most_bytes=1 << 19)


def test_several_ways_go_deep(tmp_path: Path) -> None:
    """Directories that were closed on the first way down are closed no second time."""
    tree = tmp_path / "tree"
    for name in ("a", "b", "c"):
        (tree / name).joinpath(*["d"] * 100).mkdir(parents=True)
        (tree / name).joinpath(*["d"] * 50, "other", *["d"] * 50).mkdir(parents=True)
    opened = {each.name for each in Path("/proc/self/fd").iterdir()}
    remove_tree(tree)
    assert not tree.exists()
    assert {each.name for each in Path("/proc/self/fd").iterdir()} == opened
