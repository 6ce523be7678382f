"""Temporary trees that a killed ``unpack`` left: removed, and nothing else with them."""

from __future__ import annotations

import asyncio
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.experiment.handle import Experiment
from harness.model.result import Verdict
from harness.oracles.mailbox.artifacts import read_files
from scenarios.capabilities import PUBLISHED_TREE, TREE, UNPACK
from scenarios.reference_books import ARTIFACTS
from worker_under_test.adapters.local_file_space import LocalFileSpace
from worker_under_test.adapters.local_tree_space import LocalTreeSpace
from worker_under_test.adapters.places import remove
from worker_under_test.domain.artifact import ArtifactSet

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from worker_under_test.ports.file_space import Leftover

NOBODY = 65534
OURS, OTHERS = ArtifactSet("c1", "attempt-1"), ArtifactSet("c1", "attempt-2")


@contextmanager
def place_without_privileges() -> Iterator[Path]:
    """Give a directory, and act in it as somebody to whom the modes of directories apply."""
    with tempfile.TemporaryDirectory() as made:
        if os.geteuid() != 0:
            yield Path(made)
            return
        # What a thread needs is imported now: Python's own files may be out of reach then.
        asyncio.run(asyncio.to_thread(os.chown, made, NOBODY, NOBODY))
        os.seteuid(NOBODY)
        try:
            yield Path(made)
        finally:
            os.seteuid(0)


def leave_tree(path: Path, outside: Path) -> None:
    """Leave a tree as a killed life might: half of it, with modes and links of others in it."""
    below = path / "sub" / "deep"
    below.mkdir(parents=True)
    (path / "a.txt").write_text("half", encoding="utf-8")
    (below / "b.txt").write_text("half", encoding="utf-8")
    (path / "out").symlink_to(outside)
    (below / "up").symlink_to(path)
    (path / "sub" / "nowhere").symlink_to(path / "gone")
    for directory in (below, path / "sub", path):
        directory.chmod(0o500)


def outside_of(root: Path) -> Path:
    """Make a directory with a file, outside of the worker's."""
    outside = root / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept", encoding="utf-8")
    return outside


def named(root: Path, files: ArtifactSet) -> Path:
    """Return the temporary path of a set's tree."""
    return root / "files" / files.directory / files.temporary_name("tree")


async def by_begin(root: Path) -> None:
    """Begin the tree anew, as a restarted attempt does."""
    trees = LocalTreeSpace(root / "files", root / "inputs")
    await trees.begin(OURS)
    assert list(named(root, OURS).iterdir()) == []
    named(root, OURS).rmdir()


async def by_clean_up(root: Path) -> None:
    """Remove it as a clean-up does."""
    space = LocalFileSpace(root / "files")
    (ours,) = await leftovers_of(space, OURS)
    await space.remove(ours)


async def leftovers_of(space: LocalFileSpace, files: ArtifactSet) -> list[Leftover]:
    """Return what is left over of a set."""
    wanted = files.temporary_name("tree")
    return [each for each in await space.leftovers() if each.file_name == wanted]


@pytest.mark.requirement("ZIP-07", "CLN-01", "CLN-03", "INV-12", "FIL-06", "FIL-07")
@pytest.mark.parametrize("how", [by_begin, by_clean_up])
def test_a_left_over_tree_is_removed_and_no_other(
    how: Callable[[Path], Coroutine[None, None, None]],
) -> None:
    """The tree goes as a whole, whatever its modes, and no link in it is followed."""
    with place_without_privileges() as root:
        outside = outside_of(root)
        for files in (OURS, OTHERS):
            leave_tree(named(root, files), outside)
        others = sorted(named(root, OTHERS).rglob("*"))
        asyncio.run(how(root))
        assert not named(root, OURS).exists()
        assert sorted(named(root, OTHERS).rglob("*")) == others
        assert (outside / "kept").read_text(encoding="utf-8") == "kept"
        asyncio.run(LocalTreeSpace(root / "files", root / "inputs").discard(OTHERS))
        assert not (root / "files" / OURS.directory).exists()
        assert (outside / "kept").exists()


@pytest.mark.requirement("ZIP-03", "FIL-05")
def test_a_published_tree_that_is_wrong_is_replaced_whatever_its_modes() -> None:
    """The wrong tree is removed as a whole, and no link in it is followed."""
    with place_without_privileges() as root:
        outside = outside_of(root)
        published = root / "files" / OURS.directory / "tree"
        leave_tree(published, outside)

        async def run() -> dict[str, str] | None:
            trees = LocalTreeSpace(root / "files", root / "inputs")
            await trees.begin(OURS)
            await trees.add(OURS, "d", None)
            await trees.publish(OURS)
            return await trees.find(OURS)

        assert asyncio.run(run()) == {"d": ""}
        assert (outside / "kept").exists()


@pytest.mark.requirement("CP-G1", "CP-G4", "CP-G8", "ZIP-03", "ZIP-07", "CLN-01")
@pytest.mark.parametrize(
    "moment",
    [
        "tree.create.after",
        "unpack.entry.after[entry=a.txt]",
        "unpack.entry.after[entry=sub/b.txt]",
        "unpack.entry.after[entry=sub/deep/c.txt]",
        "tree.rename.before",
    ],
)
def test_a_kill_in_the_middle_leaves_a_tree_that_the_restart_removes(
    tmp_path: Path, moment: str
) -> None:
    """A real kill at each entry leaves nothing that the restart does not remove.

    Somebody has put a link and a directory that may not be written to into it meanwhile, and
    another attempt has a tree of its own.
    """
    outside = outside_of(tmp_path)
    with Experiment(UNPACK) as x:
        life = x.start()
        life.run_until(moment)
        life.kill()
        artifacts = x.worker_dir / ARTIFACTS
        (left,) = artifacts.glob("*/tree.*.tmp")
        assert left.parent.name == "u1"
        assert not (left.parent / "tree").exists()
        (left / "out").symlink_to(outside)
        (left / "of others").mkdir(mode=0o500)
        leave_tree(artifacts / "u9" / "tree.attempt-9.tmp", outside)
        others = sorted((artifacts / "u9").rglob("*"))
        x.settle()
        assert not left.exists()
        found = dict(read_files(artifacts / "u1"))
        assert sorted(found) == sorted(PUBLISHED_TREE)
        assert {path.read_bytes() for path in (left.parent / "tree").rglob("*.txt")} == {
            *TREE.values()
        }
        assert sorted((artifacts / "u9").rglob("*")) == others
        assert [path.name for path in outside.iterdir()] == ["kept"]
        remove(artifacts / "u9")
        assert x.check().verdict is Verdict.HELD
