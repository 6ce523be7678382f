"""The workspace and crash images."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.images.workspace import Workspace
from harness.model.image import Image

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Make = Callable[..., None]


def content(directory: Path) -> list[str]:
    """Return the paths of everything below a directory."""
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*"))


def copied(workspace: Workspace, name: str = "1-end") -> Image:
    """Copy what is durable now."""
    image = workspace.new_image(name)
    workspace.copy_to(image)
    return image


def test_an_image_is_a_copy_of_what_is_durable(tmp_path: Path) -> None:
    """Worker and world are copied; orders and other images are not."""
    workspace = Workspace(tmp_path / "w")
    (workspace.worker_dir / "sub").mkdir()
    (workspace.worker_dir / "sub" / "file").write_bytes(b"\x00first")
    (workspace.worker_dir / "empty").mkdir()
    (workspace.world_dir / "ledger").write_text("one")
    (workspace.control_dir / "orders").write_text("{}")
    image = copied(workspace)
    (workspace.worker_dir / "sub" / "file").write_bytes(b"second")
    assert content(image.path) == [
        "worker",
        "worker/empty",
        "worker/sub",
        "worker/sub/file",
        "world",
        "world/ledger",
    ]
    assert (image.worker_dir / "sub" / "file").read_bytes() == b"\x00first"


def test_links_stay_links(tmp_path: Path) -> None:
    """A link to a file, to a folder, to nothing and to outside is copied as it is."""
    workspace = Workspace(tmp_path / "w")
    (workspace.worker_dir / "folder").mkdir()
    links = {"file": "folder/x", "current": "folder", "out": "/etc", "gone": "nowhere"}
    for name, target in links.items():
        (workspace.worker_dir / f"to-{name}").symlink_to(target)
    image = copied(workspace)
    assert {name: str((image.worker_dir / f"to-{name}").readlink()) for name in links} == links


@pytest.mark.parametrize("make", [Workspace.copy_to, Workspace.move_to])
def test_the_world_is_copied_by_the_one_who_knows_how(tmp_path: Path, make: Make) -> None:
    """While services run, the world is copied by them, and it stays where it is."""
    workspace = Workspace(tmp_path / "w")
    (workspace.world_dir / "live").write_text("in the middle of something")

    def snapshot(destination: Path) -> None:
        destination.mkdir()
        (destination / "consistent").write_text("x")

    image = workspace.new_image("1-end")
    make(workspace, image, snapshot)
    assert content(image.world_dir) == ["consistent"]
    assert content(workspace.world_dir) == ["live"]


@pytest.mark.parametrize("make", [Workspace.copy_to, Workspace.move_to])
def test_a_moved_image_is_what_a_copied_one_would_be(tmp_path: Path, make: Make) -> None:
    """Everything durable is in an image, however it is made."""
    workspace = Workspace(tmp_path / "w")
    (workspace.worker_dir / "sub").mkdir()
    (workspace.worker_dir / "sub" / "file").write_text("x")
    (workspace.world_dir / "ledger").write_text("one")
    image = workspace.new_image("1-end")
    make(workspace, image)
    assert content(image.path) == [
        "worker",
        "worker/sub",
        "worker/sub/file",
        "world",
        "world/ledger",
    ]


def test_an_image_is_never_overwritten(tmp_path: Path) -> None:
    """The name of an image is unique in an experiment."""
    workspace = Workspace(tmp_path / "w")
    copied(workspace)
    with pytest.raises(FileExistsError):
        copied(workspace)


def test_a_workspace_is_new(tmp_path: Path) -> None:
    """An experiment never begins with what another left; removed, nothing is left."""
    workspace = Workspace(tmp_path / "w")
    with pytest.raises(FileExistsError):
        Workspace(tmp_path / "w")
    copied(workspace)
    workspace.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_directory_is_read_once_for_each_reader(tmp_path: Path) -> None:
    """An image never changes, so each reader reads each directory of it once."""
    read: list[tuple[str, Path]] = []

    def one(directory: Path) -> int:
        read.append(("one", directory))
        return len(read)

    def other(directory: Path) -> int:
        read.append(("other", directory))
        return len(read)

    image = Image(tmp_path)
    answers = [
        image.read(reader, directory)
        for reader in (one, other, one, other)
        for directory in (image.worker_dir, image.world_dir)
    ]
    assert answers == [1, 2, 3, 4, 1, 2, 3, 4]
