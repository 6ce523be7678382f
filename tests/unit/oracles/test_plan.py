"""Oracles of plans and snapshots: every fact that they can find, each in a story of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from harness_doubles import Scene, hit

from harness.model.oracle import Oracle, OracleStatus
from harness.oracles.mailbox.worker_state import GraphRow, SnapshotRow, StepRow, WorkerState
from harness.oracles.plans.plan import PlanRight
from harness.oracles.plans.snapshots import LandedRunsOnce, RunsEnd, SnapshotsAdvance
from harness.oracles.plans.step_evidence import StepSource
from harness.world.ledger import EffectLedger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.model.oracle import Evidence
    from harness.model.trace import Hit
    from harness.model.workload import Workload

Stored = tuple[int, str, str] | None
"""Number, state, and finished steps."""
HALF: Stored = (1, "running", "a")
WHOLE: Stored = (3, "completed", "ab")
MAKERS = (PlanRight, SnapshotsAdvance, RunsEnd, LandedRunsOnce)
SECOND = "incarnation 2, run 'r': "


def graphs(_workload: Workload, _crashes: int) -> tuple[GraphRow, ...]:
    """Ask for one run of two steps, the second after the first."""
    return (GraphRow("r", (StepRow("a"), StepRow("b"))),)


def points(label: str, steps: str) -> tuple[Hit, ...]:
    """Return a hit of a point for each step."""
    return tuple(hit(label, run="r", step=step) for step in steps)


class Story:
    """A worker that was struck once, and recovered."""

    def __init__(self, path: Path) -> None:
        self._scene = Scene(path, commands=("r",))

    def told(
        self,
        crash: Stored = HALF,
        seen: str = "a",
        settled: Stored = WHOLE,
        seen_in_the_end: str = "ab",
        *,
        started: str = "",
        landed: tuple[str, str] = ("", ""),
    ) -> Evidence:
        """Return the evidence of a story.

        Args:
            crash: The snapshot that the first life left.
            seen: The effects of steps that the world saw of it.
            settled: The snapshot that the second life left.
            seen_in_the_end: All effects.
            started: Steps that the second life began.
            landed: Steps whose commit returned, in the first and in the second life.
        """
        images = self._scene.every
        for image, stored, effects in zip(
            images, (crash, *[settled] * 3), (seen, *[seen_in_the_end] * 3), strict=True
        ):
            if stored is not None:
                row = SnapshotRow("r", stored[0], stored[1], tuple(stored[2]))
                self._scene.put_books(WorkerState(snapshots=(row,)), image)
            for step in effects:
                EffectLedger(image.world_dir).record("step", f"r/{step}")
        evidence = self._scene.evidence()
        first, second = (points("step.commit.after", steps) for steps in landed)
        begun = points("step.run.before", started)
        return replace(
            evidence,
            struck=(replace(evidence.struck[0], hits=first),),
            recovered=replace(evidence.recovered, hits=(*begun, *second)),
        )

    @property
    def source(self) -> StepSource:
        """Where an oracle finds it."""
        return StepSource(
            self._scene.read_books, graphs, starts="step.run.before", landed="step.commit.after"
        )


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """Give a story to be told."""
    return Story(tmp_path)


@pytest.mark.requirement("INV-7..INV-9", "INV-13")
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("crash", "seen", "started"),
    [(HALF, "a", "b"), (None, "", "ab"), (None, "a", "b"), (WHOLE, "ab", "")],
)
def test_a_run_that_goes_on_where_it_was_holds(
    story: Story, make: Callable[[StepSource], Oracle], crash: Stored, seen: str, started: str
) -> None:
    """Whatever the first incarnation left, the second did the rest once."""
    evidence = story.told(crash, seen, started=started, landed=("", started))
    assert make(story.source).check(evidence).answer is OracleStatus.HOLDS


BLOCKED: Stored = (1, "failed", "a")


@pytest.mark.requirement(
    "ORC-01", "ORC-07", "ORC-11", "ORC-12", "PLN-11", "PLN-24", "PLN-29", "COM-09"
)
@pytest.mark.parametrize(
    ("make", "told", "fact"),
    [
        (PlanRight, (BLOCKED, "a", BLOCKED, "ab"), "blocked, and steps ['b'] ran"),
        (PlanRight, (BLOCKED, "a", (2, "running", "a"), "a"), "blocked, and its snapshot changed"),
        (PlanRight, (HALF, "", WHOLE, "b"), "step 'a' is trusted and never had its effect"),
        (
            PlanRight,
            (HALF, "a", WHOLE, "aab"),
            "step 'a' ran again, though its completion was trusted",
        ),
        (
            PlanRight,
            (None, "", (1, "running", "b"), "b"),
            "step 'b' ran, and ['a'] before it are not recorded",
        ),
        (
            PlanRight,
            (HALF, "a", WHOLE, "a"),
            "step 'b' is recorded as done, not trusted and did not run",
        ),
        (
            PlanRight,
            ((1, "running", "b"), "ab", (2, "running", "ab"), "aba"),
            "step 'b' is recorded as done, not trusted and did not run",
        ),
        (PlanRight, (HALF, "a", (2, "completed", "a"), "a"), "ended as completed with steps left"),
        (
            SnapshotsAdvance,
            ((4, "running", "a"), "a", WHOLE, "ab"),
            "the stored number went from 4 to 3",
        ),
        (SnapshotsAdvance, (HALF, "a", None, "ab"), "the stored number went from 1 to nothing"),
        (
            SnapshotsAdvance,
            (HALF, "a", (2, "running", "b"), "ab"),
            "['a'] were recorded and trusted, and are not any more",
        ),
    ],
)
def test_what_the_second_life_did_wrong_is_found(
    story: Story,
    make: Callable[[StepSource], Oracle],
    told: tuple[Stored, str, Stored, str],
    fact: str,
) -> None:
    """Each mistake has a sentence of its own."""
    finding = make(story.source).check(story.told(*told))
    assert finding.answer is OracleStatus.BROKEN
    assert SECOND + fact in finding.evidence


@pytest.mark.requirement("ORC-01")
def test_a_step_that_ran_twice_in_one_life_is_found(story: Story) -> None:
    """The trace shows it, also where the world merges the two effects."""
    finding = PlanRight(story.source).check(story.told(started="bb"))
    assert finding.evidence == ("incarnation 2: step ('r', 'b') ran 2 times",)


@pytest.mark.requirement("COM-09")
def test_a_commit_that_returned_is_recorded(story: Story) -> None:
    """What the trace saw return is in the snapshot that the incarnation left."""
    evidence = story.told(settled=(2, "running", "a"), landed=("", "b"))
    finding = SnapshotsAdvance(story.source).check(evidence)
    assert finding.evidence == (
        SECOND + "the commit of step 'b' returned, and its completion is not recorded",
    )


@pytest.mark.requirement("ORC-06", "SNP-15")
@pytest.mark.parametrize("crash", [None, HALF])
def test_what_landed_is_not_run_again(story: Story, crash: Stored) -> None:
    """The oracle needs no snapshot and sees the same where there is none."""
    evidence = story.told(crash, "a", WHOLE, "aab", landed=("a", "b"))
    finding = LandedRunsOnce(story.source).check(evidence)
    assert finding.evidence == (SECOND + "step 'a' ran again, though its commit had returned in 1",)


@pytest.mark.requirement("INV-9", "ORC-07")
@pytest.mark.parametrize(
    ("settled", "effects", "facts"),
    [
        (None, "ab", ["has not ended: nothing"]),
        ((2, "running", "ab"), "ab", ["has not ended: 'running'"]),
        ((2, "completed", "a"), "ab", ["ended with steps left"]),
        (WHOLE, "a", ["step 'b' never had its effect"]),
    ],
)
def test_a_run_that_did_not_end_is_found(
    story: Story, settled: Stored, effects: str, facts: list[str]
) -> None:
    """A run has to be ended, complete, and with every effect in the world."""
    finding = RunsEnd(story.source).check(story.told(settled=settled, seen_in_the_end=effects))
    assert [fact.removeprefix("run 'r'").lstrip(": ") for fact in finding.evidence] == facts
