"""A strike in a record: where its point stands, what was passed before it, what would have come."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from harness.record.sources import excerpt, from_here, locate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from harness.model.result import ExperimentResult, Fired
    from harness.model.trace import Hit
    from harness.record.failure_schema import StrikeRow
    from harness.record.outcome import ScenarioOutcome

_PASSED = 6
_QUOTED = re.compile("'([^'\n]{1,80})'")


def strike_row(fired: Fired, result: ExperimentResult, outcome: ScenarioOutcome) -> StrikeRow:
    """Describe a strike.

    A worker that does several things at once may break a promise about another one than that at
    whose point it was struck. Then the place and the neighbours are those of what broke.

    Args:
        fired: The strike.
        result: The experiment.
        outcome: Its scenario with all experiments.
    """
    before = _before(fired, result)
    last = _of_what_broke(before, result)
    about = last.context if last else {}
    struck = not before or last is before[-1]
    following = _next(
        outcome.control,
        lambda hit: hit.is_at(fired.moment) if struck or last is None else _equal(hit, last),
        about,
    )
    row: StrikeRow = {
        "moment": str(fired.moment),
        "incarnation": fired.incarnation,
        "file": "",
        "line": 0,
        "lines": [],
        "passed": [_named(hit) for hit in _passed(before, last)][-_PASSED:],
        "next_in_control": _named(following) if following else "",
    }
    label = fired.moment.label
    if last is not None and not struck:
        label = (following or last).label
    if label in outcome.catalogue:
        point = outcome.catalogue[label]
        path = locate(point.file)
        row["file"] = from_here(path) if path else point.file
        row["line"] = point.line
        row["lines"] = excerpt(path, point.line) if path else []
    return row


def _before(fired: Fired, result: ExperimentResult) -> list[Hit]:
    """Return the hits of the incarnation up to the strike, which is the last of them."""
    for life in result.incarnations:
        if life.number == fired.incarnation:
            found = []
            for hit in life.hits:
                found.append(hit)
                if hit.is_at(fired.moment):
                    return found
    return []


def _of_what_broke(before: list[Hit], result: ExperimentResult) -> Hit | None:
    """Return the last hit of what the first broken promise names; else the one that was struck."""
    if not before:
        return None
    names = {name for found in result.violations[:1] for name in _QUOTED.findall(found.message)}
    struck = before[-1].context
    if not names & {*struck.values()}:
        for hit in reversed(before):
            # By the same key: what else a context tells may well be of the same subject.
            if any(key in struck and value in names for key, value in hit.context.items()):
                return hit
    return before[-1]


def _passed(before: list[Hit], last: Hit | None) -> list[Hit]:
    """Return what was passed before the strike by what broke, or was struck."""
    if last is None:
        return []
    if last is before[-1]:
        return _of_subject(before[:-1], last.context)
    return [hit for hit in before if _same(hit.context.items(), last.context)]


def _next(
    control: ExperimentResult, is_it: Callable[[Hit], bool], about: Mapping[str, str]
) -> Hit | None:
    """Return what came after a hit, of the same subject, when nothing was struck."""
    for life in control.incarnations:
        after = list(itertools.dropwhile(lambda hit: not is_it(hit), life.hits))[1:]
        if after:
            return _of_subject(after, about)[0]
    return None


def _equal(hit: Hit, other: Hit) -> bool:
    """Tell whether two hits are one, whatever other subjects have hit between."""
    return (hit.label, hit.context) == (other.label, other.context) and all(
        hit.hits[key] == other.hits[key] for key in hit.context
    )


def _of_subject(hits: list[Hit], about: Mapping[str, str]) -> list[Hit]:
    """Return those about the same as a context says; all when there are none.

    A worker handles several commands at once; the neighbours that tell are those of the same one.
    """
    return [hit for hit in hits if _same(hit.context.items(), about)] or hits


def _same(context: Iterable[tuple[str, str]], about: Mapping[str, str]) -> bool:
    shared = [about[key] == value for key, value in context if key in about]
    return bool(shared) and all(shared)


def _named(hit: Hit) -> str:
    about = ", ".join(f"{key}={value}" for key, value in hit.context.items())
    return f"{hit.label}[{about}]" if about else hit.label
