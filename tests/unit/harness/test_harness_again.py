"""What is known of second restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_doubles import KILLED, new_image

from harness.again import Again, KnownRestarts
from harness.oracles.oracle import Life

if TYPE_CHECKING:
    from pathlib import Path

    from harness.again import State

KEPT = 64


def state(name: str) -> State:
    """Return a state."""
    return ("tried", 0, 3, name)


def restart(path: Path, *, one_image: bool = False) -> Again:
    """Return a second restart with images that say whose they are."""
    before, after = new_image(path / "before"), new_image(path / "after")
    unchanged = after if one_image else new_image(path / "unchanged")
    for image in (after, unchanged):
        (image.worker_dir / "whose").write_text(path.name)
    return Again(Life(3, (), KILLED, before, after), unchanged, ("7 sleep",))


def test_a_restart_is_known_by_its_state(tmp_path: Path) -> None:
    """Rule 6: scenario, seed, number of the incarnation and durable content decide together."""
    known = KnownRestarts(tmp_path / "known")
    kept = known.keep(state("a"), restart(tmp_path / "one"))
    assert known.find(state("a")) is kept
    others: list[State] = [
        ("other", 0, 3, "a"),
        ("tried", 1, 3, "a"),
        ("tried", 0, 4, "a"),
        ("tried", 0, 3, "b"),
    ]
    assert [known.find(other) for other in others] == [None] * 4


def test_its_images_outlive_the_experiment(tmp_path: Path) -> None:
    """The workspace that they come from is deleted; everything else stays as it was."""
    known = KnownRestarts(tmp_path / "known")
    given = restart(tmp_path / "one")
    kept = known.keep(state("a"), given)
    assert not given.unchanged.path.exists()
    assert not given.life.after.path.exists()
    for image in (kept.unchanged, kept.life.after):
        assert (image.worker_dir / "whose").read_text() == "one"
    assert kept.unchanged.path != kept.life.after.path
    assert (kept.survivors, kept.life.number, kept.life.death) == (("7 sleep",), 3, KILLED)


def test_one_image_for_both_stays_one(tmp_path: Path) -> None:
    """A worker that ends by itself can have one image in two places."""
    known = KnownRestarts(tmp_path / "known")
    kept = known.keep(state("a"), restart(tmp_path / "one", one_image=True))
    assert kept.unchanged is kept.life.after
    assert (kept.unchanged.worker_dir / "whose").read_text() == "one"


def test_the_least_used_is_forgotten(tmp_path: Path) -> None:
    """Rule 11: what is kept is bounded, on disk too; what was asked for stays longer."""
    known = KnownRestarts(tmp_path / "known")
    for n in range(KEPT):
        known.keep(state(str(n)), restart(tmp_path / str(n)))
    assert known.find(state("0")) is not None
    known.keep(state("more"), restart(tmp_path / "more"))
    assert known.find(state("0")) is not None
    assert known.find(state("1")) is None
    assert known.find(state("more")) is not None
    assert len(list((tmp_path / "known").iterdir())) == KEPT
