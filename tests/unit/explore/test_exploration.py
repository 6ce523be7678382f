"""An exploration: the rounds of a plan, and its results as they come in."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness_doubles import hits, result, scenario

from harness.explore.exploration import Exploration
from harness.model.errors import UnknownNameError
from harness.model.result import ExperimentResult, Verdict
from harness.model.schedule import CONTROL, parse
from harness.scenario import HOLDS, Pin, broken_by

AT_B, AT_C = parse("a.b.before=kill"), parse("a.c.before=kill")
CONTROL_HELD = result(incarnations=[hits("a.b.before", "a.c.before")])


def explored(*results: ExperimentResult) -> Exploration:
    """Return an exploration of the smallest tier with these results."""
    found = Exploration(scenario(), "smoke", 0)
    for each in results:
        found.add(each)
    return found


def test_each_round_comes_when_the_one_before_is_complete() -> None:
    """A tier decides by all results of a round; half of it is not enough."""
    found = explored()
    seen = [found.wanted]
    for each in (CONTROL_HELD, result(AT_C), result(AT_B)):
        assert not found.finished
        found.add(each)
        seen.append(found.wanted)
    assert seen == [(CONTROL,), (AT_B, AT_C), (AT_B,), ()]
    assert found.finished


def test_results_are_in_the_order_of_the_plan() -> None:
    """Two runs have the same record, whichever of their experiments ended first."""
    found = explored(CONTROL_HELD, result(AT_C), result(AT_B))
    assert [each.schedule for each in found.results] == [CONTROL, AT_B, AT_C]


def test_what_is_cut_short_is_neither_whole_nor_finished() -> None:
    """An interrupted run must not say that a point is never reached, or that all was tried."""
    half = explored(CONTROL_HELD, result(AT_C)).summary()
    assert (half.whole, half.finished, len(half.results)) == (False, False, 2)
    all_of_it = explored(CONTROL_HELD, result(AT_C), result(AT_B)).summary()
    assert (all_of_it.whole, all_of_it.finished) == (True, True)
    assert all_of_it.bounds == ("struck 2 first hits of 2",)
    assert explored().summary().results == ()


def test_a_schedule_beside_the_plan_is_kept_and_changes_nothing_of_it() -> None:
    """Somebody who goes step by step may run what the plan does not have."""
    beside = parse("a.b.before=kill / a.c.before=kill")
    found = explored(CONTROL_HELD, result(beside))
    assert found.wanted == (AT_B, AT_C)
    found.add(result(AT_B))
    found.add(result(AT_C))
    assert found.finished
    assert [each.schedule for each in found.results] == [CONTROL, AT_B, AT_C, beside]


def test_a_schedule_that_was_run_already_is_not_wanted_again() -> None:
    """Its result is there when the plan comes to it."""
    found = explored(result(AT_B), CONTROL_HELD)
    assert found.wanted == (AT_C,)


def test_a_control_leg_that_fails_ends_the_plan_and_judges_nothing() -> None:
    """Without a control that held, no other verdict counts."""
    broken = replace(CONTROL_HELD, verdict=Verdict.HUNG)
    found = explored(result(AT_B), broken)
    assert found.finished
    assert [r.verdict for r in found.summary().results] == [Verdict.HUNG, Verdict.UNKNOWN]


def test_a_misspelt_name_is_an_error_before_anything_runs() -> None:
    """The message has the nearest right name, of a tier and of a label."""
    with pytest.raises(UnknownNameError, match="'smoke'"):
        Exploration(scenario(), "smok", 0)
    declared = replace(scenario(), points=("tests.acceptance.test_second_worker",))
    with pytest.raises(UnknownNameError, match=r"'order\.charge\.before'"):
        Exploration(declared, "smoke", 0, parse("order.charg.before=kill"))
    with pytest.raises(UnknownNameError, match=r"'order\.charge\.before'"):
        Exploration(replace(declared, strike=("order.charg.before",)), "smoke", 0)


@pytest.mark.parametrize(
    ("pin", "asked", "ran"),
    [
        (HOLDS, "smoke", "smoke"),
        (HOLDS, "full", "full"),
        (broken_by("first"), "full", "smoke"),
        (broken_by("first", tier="full"), "smoke", "full"),
        (broken_by("first", tier="full"), "deep", "full"),
    ],
)
def test_a_known_bad_worker_runs_the_tier_that_must_catch_it(
    pin: Pin, asked: str, ran: str
) -> None:
    """A fault at a later hit could be pinned only if the smallest tier happened to find it."""
    found = Exploration(scenario(pin=pin), asked, 0)
    found.add(result(incarnations=[hits("a.b.before", "a.b.before")]))
    every_hit = ("a.b.before#1=kill", "a.b.before#2=kill")
    assert tuple(map(str, found.wanted)) == (every_hit if ran == "full" else every_hit[:1])
    assert found.digests == (ran == "full")
