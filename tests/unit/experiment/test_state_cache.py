"""What is known of equal states, and what an experiment may go on from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from harness_doubles import CLEAN, KILLED, new_image

from harness.experiment import state_cache
from harness.experiment.ends import Recovery, RestartResult
from harness.experiment.state_cache import (
    BoundedCache,
    KnownRecovery,
    PrefixSnapshot,
    moved_to,
    restart_after,
)
from harness.images.digest import PARTS
from harness.images.metadata import metadata_digest
from harness.images.workspace import Workspace
from harness.model.oracle import EndedIncarnation

if TYPE_CHECKING:
    from harness.experiment.state_cache import StateKey
    from harness.model.image import Image

MOST = 4
STATE: StateKey = ("tried", 0, 3, "a")


def restart(path: Path, *, ends_by_itself: bool = False) -> RestartResult:
    """Return a restart with images that say whose they are."""
    before, after = new_image(path / "before"), new_image(path / "after")
    after_restart = new_image(path / "unchanged")
    for image in (after, after_restart):
        (image.worker_dir / "whose").write_text(path.name)
    incarnations: tuple[EndedIncarnation, ...] = (EndedIncarnation(3, (), KILLED, before, after),)
    if ends_by_itself:
        incarnations = (
            EndedIncarnation(3, (), CLEAN, before, after_restart),
            EndedIncarnation(4, (), CLEAN, after_restart, after),
        )
    return RestartResult(incarnations, after_restart, ("7 sleep",))


def whose(image: Image) -> str:
    """Return what an image says."""
    return (image.worker_dir / "whose").read_text()


def test_what_is_kept_is_found_by_all_of_its_key(tmp_path: Path) -> None:
    """Scenario, seed, number of the incarnation and durable content decide together."""
    kept: BoundedCache[StateKey, str] = BoundedCache(tmp_path / "kept")
    assert kept.keep(STATE, str) == str(tmp_path / "kept" / "1")
    assert kept.find(STATE) == str(tmp_path / "kept" / "1")
    others: list[StateKey] = [
        ("other", 0, 3, "a"),
        ("tried", 1, 3, "a"),
        ("tried", 0, 4, "a"),
        ("tried", 0, 3, "b"),
    ]
    assert [kept.find(other) for other in others] == [None] * 4


def test_the_least_used_is_forgotten(tmp_path: Path) -> None:
    """What is kept is bounded, on disk too; what was asked for stays longer."""
    kept: BoundedCache[int, str] = BoundedCache(tmp_path / "kept", MOST)
    for n in range(MOST):
        kept.keep(n, str)
    assert kept.find(0) is not None
    kept.keep(MOST, str)
    assert [kept.find(n) is not None for n in range(MOST + 1)] == [True, False, True, True, True]
    kept.keep(0, str)
    assert len(list((tmp_path / "kept").iterdir())) == MOST


def test_images_of_a_restart_outlive_the_experiment(tmp_path: Path) -> None:
    """The workspace that they come from is deleted; everything else stays as it was."""
    given = restart(tmp_path / "one")
    kept = moved_to(given, new_image(tmp_path / "home").path)
    (ended,) = kept.incarnations
    assert not given.after_restart.path.exists()
    assert not given.incarnations[0].after.path.exists()
    assert [whose(image) for image in (kept.after_restart, ended.after)] == ["one", "one"]
    assert kept.after_restart.path != ended.after.path
    assert (kept.survivors, ended.number, ended.death) == (("7 sleep",), 3, KILLED)


def test_one_image_in_three_places_stays_one(tmp_path: Path) -> None:
    """A worker that ends by itself is started twice: where one ended, the next one began."""
    given = restart(tmp_path / "one", ends_by_itself=True)
    kept = moved_to(given, new_image(tmp_path / "home").path)
    restarted, fresh = kept.incarnations
    assert restarted.after.path == fresh.before.path == kept.after_restart.path
    assert whose(kept.after_restart) == "one"


@pytest.mark.parametrize("ends_by_itself", [False, True])
def test_a_restart_begins_where_the_recovery_ended(tmp_path: Path, ends_by_itself: bool) -> None:
    """A restart that is known follows on whatever recovery came to its state."""
    recovered = EndedIncarnation(
        2, (), KILLED, new_image(tmp_path / "x"), new_image(tmp_path / "settled")
    )
    given = restart(tmp_path / "one", ends_by_itself=ends_by_itself)
    first, *rest = restart_after(given, recovered).incarnations
    assert first.before is recovered.after
    assert tuple(rest) == given.incarnations[1:]


def test_image_of_a_recovery_is_a_copy(tmp_path: Path) -> None:
    """The experiment that found it out goes on to judge by its own."""
    (ended,) = restart(tmp_path / "one").incarnations
    home = new_image(tmp_path / "home").path
    kept = KnownRecovery(Recovery(ended, ()), STATE).copied_to(home).recovery.incarnation
    assert whose(kept.after) == whose(ended.after) == "one"
    assert kept.after.path.parent == home


def test_a_prefix_is_restored_as_it_was(tmp_path: Path) -> None:
    """A worker may look at modes, times and links: a copy to go on from has them."""
    after = new_image(tmp_path / "after")
    workspace = Workspace(tmp_path / "now")
    (workspace.world_dir / "ledger").write_text("charged")
    (workspace.path / "home" / ".lock").write_text("1")
    worker = workspace.worker_dir
    (worker / "sealed").mkdir()
    (worker / "sealed" / "run.sh").write_text("exit 0")
    (worker / "sealed" / "run.sh").chmod(0o750)
    os.utime(worker / "sealed" / "run.sh", ns=(1_000_000_001, 2_000_000_002))
    (worker / "link").symlink_to(worker / "sealed/run.sh")
    (worker / "sealed").chmod(0o500)
    ended = EndedIncarnation(1, (), KILLED, new_image(tmp_path / "before"), after)
    home = tmp_path / "kept"
    home.mkdir()
    prefix = PrefixSnapshot.of((ended,), workspace, home, world_from_image=False)
    assert prefix is not None
    seen = metadata_digest(workspace.path, PARTS, workspace.since_ns)
    workspace.remove()
    restored = Workspace(tmp_path / "now")
    prefix.restore(restored)
    assert metadata_digest(restored.path, PARTS, restored.since_ns) == seen
    assert (restored.world_dir / "ledger").read_text() == "charged"
    assert (restored.worker_dir / "link").read_text() == "exit 0"
    assert prefix.incarnations[0].after.path.is_relative_to(home)


def test_a_world_with_services_is_restored_from_its_image(tmp_path: Path) -> None:
    """What a running service has put where is its own affair; it goes on from its snapshot."""
    after = new_image(tmp_path / "after")
    (after.world_dir / "ledger").write_text("consistent")
    workspace = Workspace(tmp_path / "now")
    (workspace.world_dir / "ledger").write_text("in the middle of something")
    ended = EndedIncarnation(1, (), KILLED, new_image(tmp_path / "before"), after)
    home = tmp_path / "kept"
    home.mkdir()
    prefix = PrefixSnapshot.of((ended,), workspace, home, world_from_image=True)
    assert prefix is not None
    assert (prefix.home / "world" / "ledger").read_text() == "consistent"


def test_what_a_copy_cannot_be_is_not_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a program could tell the copy from the original, the experiment begins anew."""
    workspace = Workspace(tmp_path / "now")
    (workspace.worker_dir / "file").touch()
    monkeypatch.setattr(
        state_cache, "copy_tree", lambda _source, destination: Path(destination).mkdir()
    )
    cache: BoundedCache[str, PrefixSnapshot] = BoundedCache(tmp_path / "kept")
    ended = EndedIncarnation(1, (), KILLED, new_image(tmp_path / "x"), new_image(tmp_path / "y"))
    kept = cache.keep(
        "a", lambda home: PrefixSnapshot.of((ended,), workspace, home, world_from_image=False)
    )
    assert kept is cache.find("a") is None
    assert list((tmp_path / "kept").iterdir()) == []
