"""Oracles of remote effects: one per command, and none once it is unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from harness_doubles import Scene, facts

from harness.model.oracle import OracleStatus
from harness.oracles.mailbox.remote_effects import OneEffectPerCommand, UnknownLeftAlone
from harness.oracles.mailbox.worker_state import AttemptRow, WorkerState

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.image import Image

UNKNOWN = AttemptRow("a1", "c1", "notify/1", "UNKNOWN", has_result=True)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Give an experiment in which nothing happened."""
    scene = Scene(tmp_path)
    scene.put_facts(facts(delivered=["c1"]))
    return scene


def effects(world_dir: Path) -> tuple[str, ...]:
    """Read the effects that a test put into a world."""
    path = world_dir / "effects.txt"
    return tuple(path.read_text(encoding="utf-8").split()) if path.exists() else ()


def put_effects(text: str, *images: Image) -> None:
    """Put effects into worlds."""
    for image in images:
        image.world_dir.mkdir(exist_ok=True)
        (image.world_dir / "effects.txt").write_text(text, encoding="utf-8")


@pytest.mark.requirement("INV-3", "UNK-04")
@pytest.mark.parametrize(
    ("happened", "end", "fact"),
    [
        ("c1", "succeeded", None),
        ("", "unknown", None),
        ("c1", "unknown", None),
        ("", "failed", None),
        ("c1 c1", "succeeded", "command 'c1' had 2 effects"),
        ("c1 c1", "unknown", "command 'c1' had 2 effects"),
        ("", "succeeded", "command 'c1' succeeded and had no effect"),
    ],
)
def test_a_command_has_one_effect(scene: Scene, happened: str, end: str, fact: str | None) -> None:
    """A command has at most one effect, and one if it succeeded, under whatever identity."""
    put_effects(happened, scene.final)
    seen = facts(delivered=["c1"], acked=["c1"], events=[("e1", "c1", "a1", end)])
    scene.put_facts(seen, scene.final)
    finding = OneEffectPerCommand(effects, lambda name: name == "c1").check(scene.evidence())
    assert finding.evidence == (() if fact is None else (fact,))


@pytest.mark.requirement("INV-10", "UNK-05")
def test_an_unknown_command_that_acts_or_changes_is_found(scene: Scene) -> None:
    """An effect after the outcome was unknown is found, and so is another state."""
    oracle = UnknownLeftAlone(scene.read_books, effects)
    put_effects("c1", *scene.every)
    scene.put_books(WorkerState(1, attempts=(UNKNOWN,)))
    assert oracle.check(scene.evidence()).answer is OracleStatus.HOLDS
    fresh = Scene(scene.path / "again", books={})
    put_effects("c1", fresh.crash, fresh.settled, fresh.after_restart)
    put_effects("c1 c1", fresh.final)
    fresh.put_books(WorkerState(1, attempts=(UNKNOWN,)))
    fresh.put_books(WorkerState(1, attempts=(replace(UNKNOWN, state="SUCCEEDED"),)), fresh.final)
    found = UnknownLeftAlone(fresh.read_books, effects).check(fresh.evidence())
    assert found.evidence == (
        "at the end: command 'c1' is unknown and had an effect since",
        "at the end: command 'c1' was unknown and is no longer",
    )
