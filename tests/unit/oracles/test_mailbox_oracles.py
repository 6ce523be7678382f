"""The other oracles: each holds, and each finds every fact that it can report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from harness_doubles import Scene, facts

from harness.model.oracle import Finding, OracleStatus, broken_if
from harness.oracles.effects import EveryCommandHasEffect, NoEffectTwice, read_ledger
from harness.oracles.mailbox.checkpoints import CheckpointsAdvance
from harness.oracles.mailbox.commands import CommandsEnd, FreshGoesThrough
from harness.oracles.mailbox.decisions import DecisionsRight, RestartChangesNothing
from harness.oracles.mailbox.worker_state import (
    AttemptRow,
    CheckpointRow,
    DecisionRow,
    WorkerState,
)
from harness.oracles.processes import NoSurvivors, StrangersLeftAlone
from harness.world.ledger import EffectLedger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from harness.world.coordinator.facts import CoordinatorFacts

HOLDS = Finding(OracleStatus.HOLDS)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Give an experiment without books or facts."""
    return Scene(tmp_path)


def broken(*found: str) -> Finding:
    """Return *broken* with these facts."""
    return Finding(OracleStatus.BROKEN, found)


def test_broken_if_there_is_evidence() -> None:
    """*broken* comes with evidence, *holds* without."""
    assert broken_if(iter(["a", "b"])) == broken("a", "b")
    assert broken_if(iter([])) == HOLDS


def test_the_images_of_the_evidence_are_in_order(scene: Scene) -> None:
    """The states between two incarnations, and the end, each once."""
    evidence = scene.evidence()
    assert tuple(image for _, image in evidence.images) == scene.every
    assert [when for when, _ in evidence.images] == [
        "after incarnation 1",
        "at rest",
        "after a second restart",
        "at the end",
    ]
    assert [life.number for life in evidence.incarnations] == [1, 2, 3]


# Effects


@pytest.mark.requirement("INV-3")
def test_effects_that_happened_once_hold(scene: Scene) -> None:
    """Another key, or another kind under the same key, is another effect."""
    ledger = EffectLedger(scene.final.world_dir)
    for kind, key in (("charge", "c1"), ("charge", "c2"), ("mail", "c1")):
        ledger.record(kind, key)
    assert NoEffectTwice().check(scene.evidence()) == HOLDS


@pytest.mark.requirement("INV-3")
def test_an_effect_that_happened_twice(scene: Scene) -> None:
    """An effect that happened twice under one key is found, whoever did it."""
    ledger = EffectLedger(scene.final.world_dir)
    for kind, key, token in (
        ("mail", "c1", "a1"),
        ("charge", "c2", "a1"),
        ("mail", "c1", "a2"),
        ("charge", "c2", "a1"),
        ("charge", "c2", "a2"),
    ):
        ledger.record(kind, key, token)
    both = ("charge 'c2' happened 3 times", "mail 'c1' happened 2 times")
    assert NoEffectTwice().check(scene.evidence()) == broken(*both)
    assert NoEffectTwice(frozenset({"mail"})).check(scene.evidence()) == broken(both[1])
    assert NoEffectTwice(frozenset({"other"})).check(scene.evidence()) == HOLDS


@pytest.mark.requirement("INV-1")
def test_every_command_had_its_effect(scene: Scene) -> None:
    """The fresh command's effect is asked for too; a second one is another oracle's matter."""
    ledger = EffectLedger(scene.final.world_dir)
    for key in ("c1", "fresh", "c1", "more"):
        ledger.record("charge", key)
    EffectLedger(scene.settled.world_dir).record("charge", "c1")
    assert EveryCommandHasEffect("charge").check(scene.evidence()) == HOLDS


@pytest.mark.requirement("INV-1")
def test_an_effect_that_needs_one_more_restart_is_late(scene: Scene) -> None:
    """The second restart picks up what the recovery left lying; in real life there may be none."""
    for key in ("c1", "fresh"):
        EffectLedger(scene.final.world_dir).record("charge", key)
    assert EveryCommandHasEffect("charge").check(scene.evidence()) == broken(
        "command 'c1' had its effect 'charge' only after one more restart"
    )


def test_a_fresh_command_that_was_never_offered_is_not_missed(scene: Scene) -> None:
    """A worker that did not start again was said to have lost a command that it never saw."""
    EffectLedger(scene.settled.world_dir).record("charge", "c1")
    EffectLedger(scene.final.world_dir).record("charge", "c1")
    stuck = replace(scene.evidence(), failed="it died", fresh_offered=False)
    assert EveryCommandHasEffect("charge").check(stuck) == HOLDS
    assert FreshGoesThrough(scene.read_books).check(stuck) == HOLDS


@pytest.mark.requirement("INV-1")
def test_a_command_without_its_effect(scene: Scene) -> None:
    """An effect of another kind, or in another image, is not it."""
    EffectLedger(scene.final.world_dir).record("mail", "c1")
    EffectLedger(scene.settled.world_dir).record("charge", "c1")
    assert EveryCommandHasEffect("charge").check(scene.evidence()) == broken(
        "command 'c1' never had its effect 'charge'",
        "command 'fresh' never had its effect 'charge'",
    )


# Commands

DONE = facts(delivered=["c1"], acked=["c1"], events=[("e1", "c1", "a1", "unknown")])
FRESH_DONE = facts(acked=["fresh"], events=[("e9", "fresh", "a9", "succeeded")])


@pytest.mark.requirement("INV-1")
def test_commands_that_ended_hold(scene: Scene) -> None:
    """When the worker was quiet, every command had ended; the fresh one is not asked."""
    scene.put_facts(DONE, scene.settled)
    assert CommandsEnd().check(scene.evidence()) == HOLDS


@pytest.mark.requirement("INV-1")
@pytest.mark.parametrize(
    ("seen", "fact"),
    [
        (facts(), "command 'c1' was delivered 0 times and never acknowledged"),
        (
            facts(delivered=["c1", "c2", "c1"], acked=["c2"]),
            "command 'c1' was delivered 2 times and never acknowledged",
        ),
        (
            facts(delivered=["c1"], acked=["c1"], events=[("e1", "c1", "a1", "started")]),
            "command 'c1' was acknowledged and never ended",
        ),
        (
            facts(
                delivered=["c1"],
                acked=["c1"],
                receipts=[("conflicting", ("e1", "c1", "a", "failed"))],
            ),
            "command 'c1' was acknowledged and never ended",
        ),
    ],
)
def test_a_command_that_did_not_end(scene: Scene, seen: CoordinatorFacts, fact: str) -> None:
    """An end that came only after another restart is too late."""
    scene.put_facts(seen, scene.settled)
    scene.put_facts(DONE, scene.after_restart, scene.final)
    assert CommandsEnd().check(scene.evidence()) == broken(fact)


def fresh_books(checkpoint_of: str) -> WorkerState:
    """Return books with the attempt of the fresh command and one checkpoint."""
    attempt = AttemptRow("a9", "fresh", "compute/1", "SUCCEEDED", has_result=True)
    return WorkerState(attempts=(attempt,), checkpoints=(CheckpointRow(checkpoint_of, 1),))


@pytest.mark.parametrize(
    ("seen", "checkpoint_of", "found"),
    [
        (FRESH_DONE, "a9", ()),
        (FRESH_DONE, "a1", ("command 'fresh' ended without a new checkpoint",)),
        (facts(), "a9", ("command 'fresh' was delivered 0 times and never acknowledged",)),
        (facts(acked=["fresh"]), "a9", ("command 'fresh' was acknowledged and never ended",)),
    ],
)
def test_fresh_goes_through(
    scene: Scene, seen: CoordinatorFacts, checkpoint_of: str, found: tuple[str, ...]
) -> None:
    """The fresh command is accepted, checkpointed and ended: cleanliness is not enough."""
    scene.put_facts(seen, scene.final)
    scene.put_books(fresh_books(checkpoint_of), scene.final)
    finding = FreshGoesThrough(scene.read_books).check(scene.evidence())
    assert finding == (broken(*found) if found else HOLDS)


# Checkpoints


def put_checkpoints(scene: Scene, *seqs: Mapping[str, int]) -> None:
    """Put the checkpoints of each image, in order."""
    for image, by_attempt in zip(scene.every, seqs, strict=True):
        rows = tuple(CheckpointRow(attempt, seq) for attempt, seq in by_attempt.items())
        scene.put_books(WorkerState(checkpoints=rows), image)


@pytest.mark.requirement("INV-7")
def test_checkpoints_that_advance_hold(scene: Scene) -> None:
    """A sequence number may stay, rise, and appear."""
    put_checkpoints(scene, {}, {"a1": 1}, {"a1": 1, "a2": 4}, {"a1": 3, "a2": 4})
    assert CheckpointsAdvance(scene.read_books).check(scene.evidence()) == HOLDS


@pytest.mark.requirement("INV-7")
def test_a_checkpoint_that_goes_back(scene: Scene) -> None:
    """A lower number and a missing one are each reported where they happened."""
    put_checkpoints(scene, {"a1": 3, "a2": 1}, {"a1": 2, "a2": 1}, {"a1": 2}, {"a1": 2})
    assert CheckpointsAdvance(scene.read_books).check(scene.evidence()) == broken(
        "at rest: the checkpoint of attempt 'a1' went from 3 to 2",
        "after a second restart: the checkpoint of attempt 'a2' went from 1 to nothing",
    )


# Recovery

OPEN = AttemptRow("a1", "c1", "compute/1", "RUNNING", has_result=False)
CLOSED = replace(OPEN, state="SUCCEEDED", has_result=True)
RIGHT = DecisionRow(2, "a1", "recompute", "found running")


def decisions(scene: Scene, found: AttemptRow, *made: DecisionRow, killed: bool = False) -> Finding:
    """Ask about what the recovery, or the incarnation that is killed, decided about an attempt."""
    before, after = (scene.start, scene.crash) if killed else (scene.crash, scene.settled)
    earlier = (DecisionRow(1, "a0", "an earlier start", ""),)
    scene.put_books(WorkerState(attempts=(CLOSED,), decisions=earlier), scene.start, *scene.every)
    scene.put_books(WorkerState(attempts=(found,), decisions=earlier), before)
    for image in scene.every[scene.every.index(after) :]:
        scene.put_books(WorkerState(attempts=(CLOSED,), decisions=(*earlier, *made)), image)
    oracle = DecisionsRight(
        scene.read_books, lambda row: {"RUNNING": "recompute"}.get(row.state, "start")
    )
    return oracle.check(scene.evidence())


@pytest.mark.requirement("REC-01")
def test_the_decision_that_the_policy_demands_holds(scene: Scene) -> None:
    """An attempt is decided once, as the policy says, with a reason."""
    assert decisions(scene, OPEN, RIGHT) == HOLDS


@pytest.mark.requirement("REC-01")
def test_nothing_is_decided_about_what_has_ended(scene: Scene) -> None:
    """An attempt that is over needs no decision."""
    assert decisions(scene, CLOSED) == HOLDS


def test_a_killed_recovery_may_have_decided_nothing_yet(scene: Scene) -> None:
    """What was in flight at the strike may be either way."""
    assert decisions(scene, OPEN, killed=True) == HOLDS


@pytest.mark.requirement("REC-01..REC-04", "REC-14")
@pytest.mark.parametrize(
    ("found", "made", "fact"),
    [
        (CLOSED, (RIGHT,), "decided 'recompute', though it was not open"),
        (OPEN, (RIGHT, RIGHT), "decided twice"),
        (
            OPEN,
            (replace(RIGHT, decision="resume"),),
            "compute/1 found RUNNING, decided 'resume' instead of 'recompute'",
        ),
        (
            replace(OPEN, state="PENDING"),
            (RIGHT,),
            "compute/1 found PENDING, decided 'recompute' instead of 'start'",
        ),
        (OPEN, (replace(RIGHT, reason=""),), "decided 'recompute' without a reason"),
        (OPEN, (), "nothing was decided"),
    ],
)
def test_a_decision_that_is_wrong(
    scene: Scene, found: AttemptRow, made: tuple[DecisionRow, ...], fact: str
) -> None:
    """Every way to decide wrongly is told apart."""
    assert decisions(scene, found, *made) == broken(f"incarnation 2, attempt 'a1': {fact}")


@pytest.mark.requirement("REC-01")
def test_a_killed_recovery_must_not_decide_wrongly(scene: Scene) -> None:
    """What was decided before the strike is judged too."""
    made = replace(RIGHT, decision="resume")
    assert decisions(scene, OPEN, made, killed=True) == broken(
        "incarnation 1, attempt 'a1': compute/1 found RUNNING, "
        "decided 'resume' instead of 'recompute'"
    )


def restarted(scene: Scene) -> Finding:
    """Ask whether the second restart changed anything."""
    return RestartChangesNothing(scene.read_books).check(scene.evidence())


@pytest.mark.requirement("REC-17")
def test_a_restart_that_changes_nothing_holds(scene: Scene) -> None:
    """The fresh command, which comes afterwards, may change everything."""
    scene.put_books(WorkerState(boot=1), scene.settled, scene.after_restart)
    scene.put_books(WorkerState(boot=2), scene.crash, scene.final)
    for image in (scene.settled, scene.after_restart):
        EffectLedger(image.world_dir).record("charge", "c1")
    assert restarted(scene) == HOLDS


@pytest.mark.requirement("REC-17")
def test_a_restart_that_changes_the_worker(scene: Scene) -> None:
    """The worker's state before and after a restart must be the same."""
    scene.put_books(WorkerState(boot=1), scene.settled)
    scene.put_books(WorkerState(boot=2), scene.after_restart)
    assert restarted(scene) == broken("the worker's state changed")


@pytest.mark.requirement("REC-17")
def test_a_restart_that_changes_the_world(scene: Scene) -> None:
    """A restart without work has no effect in the world, or in the view given instead."""
    EffectLedger(scene.after_restart.world_dir).record("charge", "c1")
    assert restarted(scene) == broken("the world's state changed")
    unmoved = RestartChangesNothing(scene.read_books, lambda _world_dir: None)
    assert unmoved.check(scene.evidence()) == HOLDS


@pytest.mark.requirement("REC-17")
def test_a_restart_that_changes_both(scene: Scene) -> None:
    """Changes of the worker and of the world are both told."""
    scene.put_books(WorkerState(boot=1), scene.settled)
    EffectLedger(scene.settled.world_dir).record("charge", "c1")
    assert restarted(scene) == broken("the worker's state changed", "the world's state changed")


# Processes


def test_survivors(scene: Scene) -> None:
    """Each process that is left is reported by itself."""
    assert NoSurvivors().check(scene.evidence()) == HOLDS
    scene.survivors = ("7 sleep", "8 python")
    assert NoSurvivors().check(scene.evidence()) == broken(
        "still running: 7 sleep", "still running: 8 python"
    )


@pytest.mark.requirement("PRC-07")
def test_strangers_do_not_count_as_survivors(scene: Scene) -> None:
    """What is not the worker's may live on; by its name alone, not by what it holds."""
    oracle = NoSurvivors(strangers="stranger:")
    scene.survivors = ("'sh': stranger:a -c x",)
    assert oracle.check(scene.evidence()) == HOLDS
    scene.survivors = ("'sh': sh -c stranger:a",)
    assert oracle.check(scene.evidence()) == broken("still running: 'sh': sh -c stranger:a")


def of_kind(kind: str) -> Callable[[Path], tuple[str, ...]]:
    """Return a reader of the keys of effects of a kind."""
    return lambda world_dir: tuple(e.key for e in read_ledger(world_dir) if e.kind == kind)


@pytest.mark.requirement("PRC-03", "PRC-07")
@pytest.mark.parametrize(
    ("went_on", "alive", "found"),
    [
        ((), ("b", "ab", "c"), ()),
        ((), ("ab", "c"), ("'b' was ended",)),
        (("c",), ("ab", "b"), ("'c' was taken for a process of the worker",)),
        (("c",), ("ab",), ("'b' was ended", "'c' was taken for a process of the worker")),
    ],
)
def test_a_stranger_that_is_waited_for_or_ended_is_found(
    scene: Scene, went_on: tuple[str, ...], alive: tuple[str, ...], found: tuple[str, ...]
) -> None:
    """The stranger's own record shows it, and so does its absence."""
    ledger = EffectLedger(scene.final.world_dir)
    for key in ("b", "ab", "c"):
        ledger.record("there", key)
    for key in went_on:
        ledger.record("went_on", key)
    scene.survivors = tuple(f"'sh': {key} -c x" for key in alive)
    oracle = StrangersLeftAlone(of_kind("there"), of_kind("went_on"))
    assert oracle.check(scene.evidence()).evidence == found


@pytest.mark.requirement("HAR-02")
def test_the_ledger_keeps_what_was_recorded(tmp_path: Path) -> None:
    """Order and any text come back, and no file means no effects."""
    assert read_ledger(tmp_path) == ()
    ledger = EffectLedger(tmp_path)
    for key in ("c1", "line\nbreak \u2028 é", "c1"):
        ledger.record("charge", key, token="a1")
    assert [effect.key for effect in read_ledger(tmp_path)] == ["c1", "line\nbreak \u2028 é", "c1"]
