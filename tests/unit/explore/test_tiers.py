"""The tiers: what each of them tries, from what came of what it tried before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness_doubles import hit, hits, result

from harness.explore.tiers import (
    RANDOM_SCHEDULES,
    TIERS,
    deep,
    full,
    moment_of,
    recovery_hits,
    smoke,
)
from harness.model.result import Verdict
from harness.model.schedule import CONTROL, Moment, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.explore.tiers import Rounds
    from harness.model.result import ExperimentResult
    from harness.model.schedule import Schedule
    from harness.model.trace import Hit

    OracleStatus = Callable[[Schedule], ExperimentResult]

WORK = hits("a.b.before", "a.b.after", "a.b.before")
RECOVERY = hits("scan.b.before", "a.b.before")


def every(_label: str) -> bool:
    """Want every label."""
    return True


def drive(rounds: Rounds, answer: OracleStatus) -> list[list[str]]:
    """Answer each round of a tier until it ends, and return the rounds as text."""
    seen: list[list[str]] = []
    schedules = next(rounds)
    while True:
        seen.append(list(map(str, schedules)))
        try:
            schedules = rounds.send([answer(schedule) for schedule in schedules])
        except StopIteration:
            return seen


def worker(work: Sequence[Hit] = WORK, recovery: Sequence[Hit] = RECOVERY) -> OracleStatus:
    """Return a worker that works in its first life and recovers in each life after it."""

    def answer(schedule: Schedule) -> ExperimentResult:
        incarnations = [work, *[recovery] * (len(schedule.incarnations) + 1)]
        return result(schedule, incarnations, images=[str(schedule)] * len(incarnations))

    return answer


def test_smoke_strikes_the_first_hit_of_each_label() -> None:
    """README, `smoke`: the control leg, each label's first hit, then labels of the recovery."""
    assert drive(smoke(every, 0), worker()) == [
        [""],
        ["a.b.before#1=kill", "a.b.after#1=kill"],
        ["a.b.before#1=kill / scan.b.before#1=kill"],
    ]


@pytest.mark.requirement("HAR-03")
def test_smoke_follows_recoveries_of_recoveries() -> None:
    """A label that only the recovery from a crashed recovery reaches is struck there."""

    def answer(schedule: Schedule) -> ExperimentResult:
        deeper = [hits(f"r{n}.b.before") for n in range(4)]
        return result(schedule, [hits("a.b.before"), *deeper[1 : len(schedule.incarnations) + 2]])

    rounds = drive(smoke(every, 0), answer)
    assert [len(schedules) for schedules in rounds] == [1, 1, 1, 1, 1]
    assert rounds[-1] == [
        "a.b.before#1=kill / r1.b.before#1=kill / r2.b.before#1=kill / r3.b.before#1=kill"
    ]


def test_a_label_of_the_recovery_is_struck_once() -> None:
    """Two recoveries that reach the same new label give one experiment, after the first."""
    (_, _, last) = drive(smoke(every, 0), worker(WORK, hits("x.y.mid", "x.y.mid", "z.y.mid")))
    assert last == [
        "a.b.before#1=kill / x.y.mid#1=kill",
        "a.b.before#1=kill / z.y.mid#1=kill",
    ]


@pytest.mark.parametrize("tier", TIERS)
def test_only_wanted_labels_are_struck(tier: str) -> None:
    """`Scenario.strike` chooses in the first life and in every recovery."""
    rounds = drive(TIERS[tier](lambda label: label == "a.b.before", 0), worker())
    struck = {
        moment.label for schedules in rounds for text in schedules for moment in parse(text).moments
    }
    assert struck == {"a.b.before"}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.HELD])
def test_a_control_leg_that_did_not_hold_ends_everything(tier: str, verdict: Verdict) -> None:
    """Without a control leg that held, no experiment could say anything."""
    rounds = drive(TIERS[tier](every, 0), lambda s: result(s, [WORK, RECOVERY], verdict=verdict))
    assert rounds == [[""]]


def test_full_strikes_every_hit_and_every_moment_of_each_recovery() -> None:
    """README, `full`: single crashes at each hit, double crashes at each hit of the recovery."""
    assert drive(full(every, 0), worker()) == [
        [""],
        ["a.b.before#1=kill", "a.b.after#1=kill", "a.b.before#2=kill"],
        [
            f"{first}=kill / {second}=kill"
            for first in ("a.b.before#1", "a.b.after#1", "a.b.before#2")
            for second in ("scan.b.before#1", "a.b.before#1")
        ],
    ]


def test_full_explores_one_recovery_for_equal_images() -> None:
    """Images whose durable content is equal are checked once."""

    def answer(schedule: Schedule) -> ExperimentResult:
        image = "same" if schedule.moments[:1] != (Moment("a.b.before", 2),) else "other"
        return result(schedule, [WORK, RECOVERY, RECOVERY], images=[image, "x", "x"])

    doubles = drive(full(every, 0), answer)[2]
    assert doubles == [
        f"{first}=kill / {second}=kill"
        for first in ("a.b.before#1", "a.b.before#2")
        for second in ("scan.b.before#1", "a.b.before#1")
    ]


def test_full_looks_for_a_recovery_where_there_was_one() -> None:
    """A first crash that did not fire left no image whose recovery could be explored."""

    def answer(schedule: Schedule) -> ExperimentResult:
        if schedule.moments[:1] == (Moment("a.b.before", 1),):
            return result(schedule, [WORK], verdict=Verdict.NOT_FIRED, fired=0, images=["same"])
        return result(schedule, [WORK, RECOVERY, RECOVERY], images=["same", "x", "x"])

    doubles = drive(full(every, 0), answer)[2]
    assert [text.split(" / ")[0] for text in doubles] == ["a.b.after#1=kill"] * 2


@pytest.mark.requirement("HAR-03")
def test_full_strikes_labels_that_only_a_second_recovery_reaches() -> None:
    """What the recovery after a crashed recovery reaches for the first time is struck."""

    def answer(schedule: Schedule) -> ExperimentResult:
        incarnations = [WORK, RECOVERY, hits("late.b.before", "a.b.before")]
        return result(schedule, incarnations, images=["same"] * 3)

    rounds = drive(full(every, 0), answer)
    assert rounds[3:] == [
        ["a.b.before#1=kill / scan.b.before#1=kill / late.b.before#1=kill"],
    ]


def test_full_scopes_a_moment_by_its_first_context() -> None:
    """A scoped moment stays the same, however concurrent work interleaves."""
    work = [hit("a.b.before", 5, nth_in_context=2, command="c2", part="1")]
    rounds = drive(full(every, 0), worker(work, ()))
    assert rounds[1] == ["a.b.before[command=c2]#2=kill"]


def test_deep_begins_with_full() -> None:
    """README, `deep`: everything of `full`, and then drawn schedules of three and four crashes."""
    rounds = drive(deep(every, 7), worker())
    whole = drive(full(every, 7), worker())
    assert rounds[: len(whole)] == whole
    drawn = rounds[len(whole) :]
    assert [{len(parse(text).incarnations) for text in schedules} for schedules in drawn] == [
        {3},
        {4},
    ]


def test_deep_draws_from_the_seed_alone() -> None:
    """One seed gives one draw, another seed another one, and nothing is drawn twice."""
    many = worker(hits(*["a.b.before"] * 30), hits(*["r.b.before"] * 10))
    first, again, other = (drive(deep(every, seed), many) for seed in (1, 1, 2))
    assert first == again
    assert first[3:] != other[3:]
    assert all(len(set(schedules)) == len(schedules) for schedules in first)


def test_deep_is_bounded() -> None:
    """However much there is to draw from, the draw has its budget."""
    many = worker(hits(*["a.b.before"] * 30), hits(*["r.b.before"] * 10))
    drawn = drive(deep(every, 1), many)[3:]
    assert [len(schedules) for schedules in drawn] == [RANDOM_SCHEDULES // 2] * 2


def test_deep_goes_on_only_from_what_held() -> None:
    """A failure that was found already is not found again behind further crashes."""

    def answer(schedule: Schedule) -> ExperimentResult:
        bad = schedule.moments[1:2] == (Moment("scan.b.before"),)
        verdict = Verdict.BROKEN if bad else Verdict.HELD
        incarnations = [WORK, *[RECOVERY] * (len(schedule.incarnations) + 1)]
        return result(
            schedule, incarnations, verdict=verdict, images=[str(schedule)] * len(incarnations)
        )

    drawn = drive(deep(every, 1), answer)[3:]
    assert drawn
    assert all(" / a.b.before#1=kill / " in text for schedules in drawn for text in schedules)


def test_deep_ends_when_there_is_nothing_to_draw_from() -> None:
    """A worker whose recovery reaches no point has no second crash."""
    assert len(drive(deep(every, 1), worker(WORK, ()))) == 3


def test_the_moment_of_a_hit() -> None:
    """Without context all hits of the label count, with context those of the first key."""
    assert moment_of(hit("a.b.before", 3)) == Moment("a.b.before", 3)
    scoped = hit("a.b.before", 3, nth_in_context=2, part="p", command="c")
    assert moment_of(scoped) == Moment("a.b.before", 2, "part", "p")


@pytest.mark.parametrize(
    ("schedule", "incarnations", "fired", "expected"),
    [
        (CONTROL, [WORK, RECOVERY], 0, WORK),
        (parse("a.b.before=kill"), [WORK, RECOVERY], 1, RECOVERY),
        (parse("a.b.before=kill"), [WORK], 1, ()),
        (parse("a.b.before=kill"), [WORK, RECOVERY], 0, ()),
        (parse("a.b.before=kill / scan.b.before=kill"), [WORK, RECOVERY], 1, ()),
        (parse("a.b.before=kill / scan.b.before=kill"), [(), (), RECOVERY], 2, RECOVERY),
    ],
)
def test_the_recovery_is_the_life_after_the_last_proved_strike(
    schedule: Schedule, incarnations: Sequence[Sequence[Hit]], fired: int, expected: Sequence[Hit]
) -> None:
    """Without proof of every strike there is no recovery to look at."""
    assert recovery_hits(result(schedule, incarnations, fired=fired)) == tuple(expected)


@pytest.mark.parametrize(
    ("tier", "said"),
    [
        (smoke, "struck 2 first hits of 3"),
        (full, "explored the recovery of 3 states that 3 crashes left"),
        (deep, "drew 12 of 12 schedules of 3 crashes"),
    ],
)
def test_every_tier_says_what_it_left_out(tier: Callable[..., Rounds], said: str) -> None:
    """A bound that was reached is said in the result."""
    answer = worker()
    rounds = tier(every, 0)
    schedules = next(rounds)
    with pytest.raises(StopIteration) as end:  # noqa: PT012 - it ends in some round
        while True:
            schedules = rounds.send([answer(schedule) for schedule in schedules])
    assert said in end.value.value
