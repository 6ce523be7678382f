"""A strike in a record: where its point stands, what was passed before it, what would have come."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from harness.record.sources import excerpt, from_here, locate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.model.result import ExperimentResult, Fired
    from harness.model.trace import Hit
    from harness.record.failure_schema import StrikeRow
    from harness.record.outcome import ScenarioOutcome

_PASSED = 6


def strike_row(fired: Fired, result: ExperimentResult, outcome: ScenarioOutcome) -> StrikeRow:
    """Describe a strike.

    Args:
        fired: The strike.
        result: The experiment.
        outcome: Its scenario with all experiments.
    """
    before = _before(fired, result)
    about = before[-1].context if before else {}
    row: StrikeRow = {
        "moment": str(fired.moment),
        "incarnation": fired.incarnation,
        "file": "",
        "line": 0,
        "lines": [],
        "passed": [_named(hit) for hit in _of_subject(before[:-1], about)][-_PASSED:],
        "next_in_control": _next(fired, outcome.control, about),
    }
    label = fired.moment.label
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


def _next(fired: Fired, control: ExperimentResult, about: Mapping[str, str]) -> str:
    for life in control.incarnations:
        after = list(itertools.dropwhile(lambda hit: not hit.is_at(fired.moment), life.hits))[1:]
        if after:
            return _named(_of_subject(after, about)[0])
    return ""


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
