"""Tiers: generators of experiments.

A tier yields a round of schedules and is sent their results, as often as it likes. What it yields
depends on results alone, never on the order in which experiments happened to end.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, TypeAlias

from harness.model.result import Verdict
from harness.model.schedule import CONTROL, Moment, Schedule

if TYPE_CHECKING:
    from harness.model.result import ExperimentResult
    from harness.model.trace import Hit

Rounds: TypeAlias = Generator[list[Schedule], list["ExperimentResult"], tuple[str, ...]]
"""Yields rounds of schedules, is sent their results, and returns what it left out, in words."""

Wanted: TypeAlias = Callable[[str], bool]

RANDOM_SCHEDULES = 200
"""How many schedules of three or more crashes the tier `deep` draws for a scenario."""


def smoke(wanted: Wanted, _seed: int) -> Rounds:
    """Strike the first hit of each label; a label that only a recovery reaches, there.

    Args:
        wanted: Tells whether a label is to be struck.
        _seed: Not used: nothing is drawn.
    """
    (control,) = yield [CONTROL]
    if control.verdict is not Verdict.HELD:
        return ()
    hits = [hit.label for hit in control.incarnations[0].hits if wanted(hit.label)]
    labels = dict.fromkeys(hits)
    frontier = yield [CONTROL.then(Moment(label)) for label in labels]
    yield from _labels_of_recovery(frontier, set(labels), wanted)
    return (f"struck {len(labels)} first hits of {len(hits)}",)


def full(wanted: Wanted, _seed: int) -> Rounds:
    """Strike every hit, and every moment of the recovery after each.

    First crashes that left the same durable state have the same recovery: it is explored after
    the first of them.

    Args:
        wanted: Tells whether a label is to be struck.
        _seed: Not used: nothing is drawn.
    """
    _, bounds = yield from _full(wanted)
    return bounds


def deep(wanted: Wanted, seed: int) -> Rounds:
    """Do what `full` does, then draw schedules of up to four crashes from the seed.

    Args:
        wanted: Tells whether a label is to be struck.
        seed: Decides what is drawn.
    """
    frontier, bounds = yield from _full(wanted)
    draw = random.Random(f"deep/{seed}")
    for crashes in (3, 4):
        pool = [
            result.schedule.then(moment_of(hit))
            for result in frontier
            if result.verdict is Verdict.HELD
            for hit in recovery_hits(result)
            if wanted(hit.label)
        ]
        chosen = draw.sample(pool, min(RANDOM_SCHEDULES // 2, len(pool)))
        bounds += (f"drew {len(chosen)} of {len(pool)} schedules of {crashes} crashes",)
        if not chosen:
            break
        frontier = yield chosen
    return bounds


TIERS: dict[str, Callable[[Wanted, int], Rounds]] = {"smoke": smoke, "full": full, "deep": deep}


def _full(
    wanted: Wanted,
) -> Generator[
    list[Schedule], list[ExperimentResult], tuple[list[ExperimentResult], tuple[str, ...]]
]:
    (control,) = yield [CONTROL]
    if control.verdict is not Verdict.HELD:
        return [], ()
    hits = [hit for hit in control.incarnations[0].hits if wanted(hit.label)]
    singles = yield [CONTROL.then(moment_of(hit)) for hit in hits]
    by_image: dict[str, ExperimentResult] = {}
    for result in singles:
        if len(result.incarnations) > 1:
            by_image.setdefault(result.incarnations[0].image, result)
    doubles = yield [
        result.schedule.then(moment_of(hit))
        for result in by_image.values()
        for hit in recovery_hits(result)
        if wanted(hit.label)
    ]
    seen = {hit.label for hit in hits}
    seen |= {moment.label for result in doubles for moment in result.schedule.moments}
    yield from _labels_of_recovery(doubles, seen, wanted)
    crashes = sum(len(result.incarnations) > 1 for result in singles)
    bound = f"explored the recovery of {len(by_image)} states that {crashes} crashes left"
    return doubles, (bound,)


def _labels_of_recovery(
    frontier: list[ExperimentResult], seen: set[str], wanted: Wanted
) -> Generator[list[Schedule], list[ExperimentResult], None]:
    while True:
        found: list[Schedule] = []
        for result in frontier:
            for hit in recovery_hits(result):
                if wanted(hit.label) and hit.label not in seen:
                    seen.add(hit.label)
                    found.append(result.schedule.then(Moment(hit.label)))
        if not found:
            return
        frontier = yield found


def moment_of(hit: Hit) -> Moment:
    """Return the moment of a hit, scoped by the first context that its point gives.

    Scoped, the moment stays the same however concurrent work interleaves.
    """
    for key, value in hit.context.items():
        return Moment(hit.label, hit.hits[key], key, value)
    return Moment(hit.label, hit.hits[""])


def recovery_hits(result: ExperimentResult) -> tuple[Hit, ...]:
    """Return what the incarnation after the last struck one reached, if there was one."""
    struck = len(result.schedule.incarnations)
    if len(result.fired) < struck or len(result.incarnations) <= struck:
        return ()
    return result.incarnations[struck].hits
