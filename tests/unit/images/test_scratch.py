"""Scratch directories: deleted when their owners are gone, and not before."""

from __future__ import annotations

import os
from pathlib import Path

from harness.images.scratch import sweep_scratch, take_scratch


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
