"""Scenarios that reach the declared points together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.model.result import ExperimentResult, IncarnationTrace, Verdict
from harness.model.schedule import CONTROL
from harness.model.trace import Hit
from harness.moments.catalogue import Catalogue, DeclaredPoint
from harness.record.outcome import ScenarioRun, judge_together
from scenarios.reference import REFERENCE

LABELS = ("a.step.before", "b.step.before", "c.step.before")
CATALOGUE = Catalogue(DeclaredPoint(label, "f.py", 1) for label in LABELS)


def ran(name: str, together: str, *reached: str, whole: bool = True) -> ScenarioRun:
    """Return the run of a scenario whose control leg reached some labels."""
    hits = tuple(Hit(label, {}, {"": 1}, stop=False) for label in reached)
    control = ExperimentResult(
        scenario=name,
        schedule=CONTROL,
        seed=0,
        verdict=Verdict.HELD,
        violations=(),
        fired=(),
        note="",
        incarnations=(IncarnationTrace(1, hits, "", ""),),
    )
    scenario = replace(REFERENCE, name=name, together=together)
    return ScenarioRun(scenario, CATALOGUE, (control,), whole=whole)


@pytest.mark.requirement("HAR-01")
def test_a_point_that_another_of_the_group_reached_is_not_missed() -> None:
    """What nobody of the group reached still is, and a scenario alone answers for all."""
    one, two, alone = judge_together(
        (
            ran("one", "group", LABELS[0]),
            ran("two", "group", LABELS[1]),
            ran("alone", "", LABELS[2]),
        ),
        groups={"group": frozenset({"one", "two"})},
    )
    assert one.unreached == two.unreached == (LABELS[2],)
    assert alone.unreached == LABELS[:2]


@pytest.mark.requirement("HAR-01")
def test_a_group_that_is_not_complete_is_not_judged_by_what_it_missed() -> None:
    """One scenario of a group, run alone, says nothing about the points of the others."""
    (one,) = judge_together(
        (ran("one", "group", LABELS[0]),), groups={"group": frozenset({"one", "two"})}
    )
    assert one.unreached == ()
    assert not any("never reached" in why for why in one.inconclusive())


def test_a_group_of_which_one_was_cut_short_is_not_judged_by_what_it_missed() -> None:
    """An interrupted run must not say that a point is never reached: the rest could reach it."""
    one, _ = judge_together(
        (ran("one", "group", LABELS[0]), ran("two", "group", whole=False)),
        groups={"group": frozenset({"one", "two"})},
    )
    assert one.unreached == ()
