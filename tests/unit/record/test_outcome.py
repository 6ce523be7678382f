"""What a scenario came to: pins, points that were not reached, moments, exit codes."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from harness_doubles import broken, hits, result, scenario

from harness.model.result import Verdict, Violation
from harness.model.schedule import Moment, parse
from harness.moments.catalogue import Catalogue, DeclaredPoint
from harness.record.outcome import ExitCode, MomentTally, ScenarioOutcome, exit_code
from harness.scenario import HOLDS, Pin, broken_by

if TYPE_CHECKING:
    from harness.model.result import ExperimentResult

INCONCLUSIVE = (Verdict.NOT_FIRED, Verdict.WRONG_DEATH, Verdict.HUNG, Verdict.UNKNOWN)
AT_B = parse("a.b.before=kill")
AT_C = parse("a.c.before=kill")
LABELS = ("a.b.before", "a.c.before")
CATALOGUE = Catalogue([DeclaredPoint(label, "p/a.py", n) for n, label in enumerate(LABELS, 1)])
CONTROL_HELD = result(incarnations=[hits(*LABELS)])
FIRST = broken_by("first")


def outcome(
    *others: ExperimentResult,
    control: ExperimentResult = CONTROL_HELD,
    pin: Pin = HOLDS,
    whole: bool = True,
    catalogue: Catalogue = CATALOGUE,
    strike: tuple[str, ...] = (),
    must_reach_all: bool = True,
    points: tuple[str, ...] = (),
) -> ScenarioOutcome:
    """Return the outcome of a scenario with two oracles and these experiments."""
    tried = scenario(
        pin=pin, oracles=("first", "second"), strike=strike, must_reach_all=must_reach_all
    )
    tried = replace(tried, points=points)
    return ScenarioOutcome(tried, catalogue, (control, *others), whole=whole)


@pytest.mark.parametrize(
    ("pin", "others", "mismatch"),
    [
        (HOLDS, (result(AT_B),), ""),
        (HOLDS, (broken(AT_B, "first"),), "1 experiment broke a promise"),
        (HOLDS, (broken(AT_B, "first"), broken(AT_C, "second")), "2 experiments broke a promise"),
        (FIRST, (broken(AT_B, "first"),), ""),
        (FIRST, (broken(AT_B, "second", "first"), result(AT_C)), ""),
        (FIRST, (result(AT_B),), "pinned broken by first, but none did"),
        (FIRST, (broken(AT_B, "second"),), "pinned broken by first, but only second did"),
        (
            broken_by("first", tier="full"),
            (result(AT_B),),
            "pinned broken by first in the tier full, but none did",
        ),
    ],
)
def test_the_outcome_against_the_pin(
    pin: Pin, others: tuple[ExperimentResult, ...], mismatch: str
) -> None:
    """A mismatch fails in both directions (exit code 1)."""
    seen = outcome(*others, pin=pin)
    assert seen.mismatch == mismatch
    assert seen.exit_code is (ExitCode.BROKEN if mismatch else ExitCode.AS_PINNED)


@pytest.mark.parametrize("others", [(), (result(AT_B),), (broken(AT_B, "second"),)])
def test_one_schedule_alone_need_not_catch_a_known_bad_worker(
    others: tuple[ExperimentResult, ...],
) -> None:
    """Only a whole tier owes the catch that a scenario is pinned to."""
    assert outcome(*others, pin=FIRST, whole=False).exit_code is ExitCode.AS_PINNED


def test_one_schedule_alone_can_break_a_promise() -> None:
    """A worker that is pinned to hold must hold under any schedule."""
    assert outcome(broken(AT_B, "first"), whole=False).exit_code is ExitCode.BROKEN


@pytest.mark.parametrize("verdict", INCONCLUSIVE)
@pytest.mark.parametrize("pin", [HOLDS, FIRST])
def test_a_verdict_that_says_nothing_is_inconclusive(verdict: Verdict, pin: Pin) -> None:
    """Not fired, wrong death, hung and unknown are exit code 3, whatever the pin."""
    caught = [broken(AT_C, "first")] if pin is FIRST else []
    seen = outcome(result(AT_B, verdict=verdict, note="why"), *caught, pin=pin)
    assert seen.exit_code is ExitCode.INCONCLUSIVE
    assert list(seen.inconclusive()) == [f"tried[a.b.before#1=kill]: {verdict}: why"]


def test_broken_is_stronger_than_inconclusive() -> None:
    """One broken promise is certain, however many others could not be judged."""
    seen = outcome(broken(AT_B, "first"), result(AT_C, verdict=Verdict.HUNG))
    assert seen.exit_code is ExitCode.BROKEN


@pytest.mark.parametrize("pin", [HOLDS, FIRST])
@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.HELD])
def test_nothing_is_concluded_when_the_control_leg_failed(pin: Pin, verdict: Verdict) -> None:
    """Without a control leg the scenario is unknown, even where an experiment broke."""
    found = (Violation("first", "a fact"),) if verdict is Verdict.BROKEN else ()
    control = result(incarnations=[hits(*LABELS)], verdict=verdict, violations=found, note="a note")
    seen = outcome(broken(AT_B, "first"), control=control, pin=pin)
    assert seen.exit_code is ExitCode.INCONCLUSIVE
    why = "first: a fact" if found else "a note"
    assert list(seen.inconclusive()) == [f"the control leg, without a fault, was {verdict}: {why}"]


@pytest.mark.requirement("HAR-01")
def test_a_declared_point_that_nothing_reached_is_inconclusive() -> None:
    """A point with no hits turns the run red, and the reason says where it stands."""
    seen = outcome(result(AT_B), control=result(incarnations=[hits("a.b.before")]))
    assert seen.unreached == ("a.c.before",)
    assert seen.exit_code is ExitCode.INCONCLUSIVE
    assert list(seen.inconclusive()) == ["p/a.py:2: a.c.before is declared and was never reached"]


@pytest.mark.requirement("HAR-01")
def test_a_point_that_a_recovery_reached_is_reached() -> None:
    """Any incarnation of any experiment counts."""
    control = result(incarnations=[hits("a.b.before")])
    seen = outcome(result(AT_B, [hits("a.b.before"), hits("a.c.before")]), control=control)
    assert seen.unreached == ()
    assert seen.exit_code is ExitCode.AS_PINNED


def test_points_count_only_where_they_were_promised() -> None:
    """One schedule alone, a scenario that says so, and labels not to be struck owe nothing."""
    control = result(incarnations=[hits("a.b.before")])
    assert outcome(control=control, whole=False).unreached == ()
    assert outcome(control=control, must_reach_all=False).unreached == ()
    assert outcome(control=control, strike=("a.b.before",)).unreached == ()
    assert outcome(control=control, strike=("a.c.before",)).unreached == ("a.c.before",)


NOTHING_REACHED = result(incarnations=[()])
NO_POINTS = Catalogue([])
ELSEWHERE = (
    "no crash point was reached, though 2 are declared in p: this workload does not come there, or "
    "another program does, in which no point is armed"
)


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (
            outcome(control=NOTHING_REACHED, catalogue=NO_POINTS),
            "no crash point was reached, and the scenario names no package in points",
        ),
        (
            outcome(control=NOTHING_REACHED, catalogue=NO_POINTS, points=("p",)),
            "no crash point was reached, and none is declared in p",
        ),
        (
            outcome(control=NOTHING_REACHED, points=("p",), must_reach_all=False),
            ELSEWHERE,
        ),
        (
            outcome(strike=("a.d.before",)),
            "none of the labels to strike was reached (a.d.before)",
        ),
        (
            outcome(result(AT_B, verdict=Verdict.NOT_FIRED, fired=0)),
            "none of 1 planned strikes is proved",
        ),
    ],
)
def test_a_tier_in_which_nothing_was_struck_is_inconclusive(
    seen: ScenarioOutcome, why: str
) -> None:
    """Without a proved strike a run that found nothing was green, whatever the reason."""
    assert seen.exit_code is ExitCode.INCONCLUSIVE
    said = f"nothing was struck, so nothing is proved: {why}; see docs/reports.md"
    assert next(seen.inconclusive()) == said


def test_the_control_leg_alone_strikes_nothing_and_need_not() -> None:
    """Who asks for the empty schedule asks for the control leg, and gets what came of it."""
    assert outcome(control=NOTHING_REACHED, whole=False).exit_code is ExitCode.AS_PINNED


def test_the_tally_of_moments() -> None:
    """README, *record*: each moment was reached, struck, struck in a recovery, survived or not."""
    twice = parse("a.b.before=kill / a.c.before=kill")
    seen = outcome(
        result(AT_B, [hits("a.b.before"), hits(*LABELS)]),
        broken(twice, "first"),
        result(AT_C, verdict=Verdict.NOT_FIRED, fired=0),
        result(parse("x.y.mid=kill"), verdict=Verdict.NOT_FIRED, fired=0),
        control=result(incarnations=[hits("a.b.before")]),
    )
    assert seen.moments == (
        MomentTally(
            Moment("a.b.before"),
            "p/a.py:1",
            reached=True,
            struck=2,
            struck_in_recovery=0,
            survived=False,
        ),
        MomentTally(
            Moment("a.c.before"),
            "p/a.py:2",
            reached=True,
            struck=1,
            struck_in_recovery=1,
            survived=False,
        ),
        MomentTally(
            Moment("x.y.mid"), "", reached=False, struck=0, struck_in_recovery=0, survived=False
        ),
    )


def test_a_moment_survives_when_every_experiment_that_struck_it_held() -> None:
    """A moment survives if it was struck with proof and held."""
    (at_b, at_c) = outcome(result(AT_B), result(AT_C)).moments
    assert (at_b.struck, at_b.survived) == (1, True)
    assert (at_c.struck, at_c.survived) == (1, True)


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.HELD])
def test_a_moment_does_not_survive_anything_else(verdict: Verdict) -> None:
    """Only *held* is a pass."""
    (at_b,) = outcome(result(AT_B), result(AT_B, verdict=verdict)).moments
    assert (at_b.struck, at_b.survived) == (2, False)


@pytest.mark.requirement("HAR-01")
def test_points_that_were_not_reached_are_moments_too() -> None:
    """Points that were not reached are in the tally, neither reached nor struck."""
    (missed,) = outcome(control=result(incarnations=[hits("a.b.before")])).moments
    assert (missed.moment, missed.reached, missed.struck) == (Moment("a.c.before"), False, 0)


AS_PINNED = outcome(result(AT_B))
BROKEN = outcome(broken(AT_B, "first"))
UNSURE = outcome(result(AT_B, verdict=Verdict.HUNG))


@pytest.mark.parametrize("others", list(itertools.permutations([AS_PINNED, BROKEN, UNSURE])))
def test_the_exit_code_of_a_run(others: tuple[ScenarioOutcome, ...]) -> None:
    """Broken goes before inconclusive, and that before as pinned, in whatever order."""
    assert exit_code(others) is ExitCode.BROKEN
    without_broken = tuple(each for each in others if each is not BROKEN)
    assert exit_code(without_broken) is ExitCode.INCONCLUSIVE
    assert exit_code((AS_PINNED, AS_PINNED)) is ExitCode.AS_PINNED


def test_the_exit_codes_are_the_documented_numbers() -> None:
    """The exit codes are distinct numbers that scripts rely on."""
    assert {code.name: code.value for code in ExitCode} == {
        "AS_PINNED": 0,
        "BROKEN": 1,
        "USAGE": 2,
        "INCONCLUSIVE": 3,
        "HARNESS": 4,
        "INTERRUPTED": 130,
        "TERMINATED": 143,
    }
