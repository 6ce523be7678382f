"""Scratch directories: deleted when their owners are gone, and not before."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from harness.images import scratch
from harness.images.deletion import remove_tree
from harness.images.scratch import sweep_scratch, take_scratch

if TYPE_CHECKING:
    import pytest


def let_go(directory: Path) -> None:
    """Close what this process holds open in a directory, as its end would."""
    for fd in Path("/proc/self/fd").iterdir():
        try:
            held = fd.readlink()
        except FileNotFoundError:  # it was open for the listing alone
            continue
        if held.parent == directory:
            os.close(int(fd.name))


def test_a_directory_is_swept_when_its_owner_is_gone(tmp_path: Path) -> None:
    """What a killed run left is deleted by the next; what is in use is not."""
    left, used = take_scratch(tmp_path), take_scratch(tmp_path)
    (left / "workspace" / "worker").mkdir(parents=True)
    (left / "workspace" / "worker" / "file").write_text("x")
    sweep_scratch(tmp_path)
    assert left.exists()
    let_go(left)
    sweep_scratch(tmp_path)
    assert not left.exists()
    assert used.exists()
    let_go(used)


def test_the_directories_of_others_are_left_alone(tmp_path: Path) -> None:
    """Only what the harness has made is deleted."""
    (tmp_path / "crash-harness-of-somebody-else").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "owner.lock").write_text("")
    sweep_scratch(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "crash-harness-of-somebody-else",
        "data",
    ]


def test_what_cannot_be_deleted_is_said_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One directory kept the sweep from all others, and every later run from its work."""
    stuck, other = sorted((take_scratch(tmp_path), take_scratch(tmp_path)))
    (stuck / "immutable").touch()
    let_go(stuck)
    let_go(other)

    def refuse(path: Path) -> None:
        if path.name == "immutable":
            raise PermissionError(errno.EPERM, "Operation not permitted", str(path))
        remove_tree(path)

    with monkeypatch.context() as patch:
        patch.setattr(scratch, "remove_tree", refuse)
        (said,) = sweep_scratch(tmp_path)
    assert str(stuck) in said
    assert "Operation not permitted" in said
    assert not other.exists()
    assert sweep_scratch(tmp_path) == ()
    assert not stuck.exists()
