"""The history of an experiment in one order: what the worker did, what the world saw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from harness.record.world_view import describe_fact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.result import ExperimentResult, IncarnationTrace
    from harness.record.failure_schema import HistoryRow
    from harness.record.world_view import Observed

_MOST = 100_000
_CONTEXT_CHARS = 200

What = Literal["started", "point", "struck", "ended", "fact", "effect"]


def history(
    result: ExperimentResult, observed: list[Observed], most: int = _MOST
) -> tuple[list[HistoryRow], int]:
    """Return the history, and how many entries were left out of its middle.

    Args:
        result: What each incarnation did.
        observed: What the world had seen after each of them.
        most: How many entries to keep.
    """
    struck = {(fired.incarnation, str(fired.moment)) for fired in result.fired}
    moments = {str(fired.moment): fired.moment for fired in result.fired}
    rows: list[HistoryRow] = []
    facts = effects = 0
    for life, then in zip(result.incarnations, observed, strict=True):
        rows.append(_row(life, "started", "started"))
        for hit in life.hits:
            hurt = any(
                (life.number, name) in struck and hit.is_at(moment)
                for name, moment in moments.items()
            )
            row = _row(life, "struck" if hurt else "point", hit.label)
            row["context"] = {key: text[:_CONTEXT_CHARS] for key, text in hit.context.items()}
            row["hits"] = hit.hits
            row["stopped"] = hit.stop
            rows.append(row)
        rows.extend(_sighted(life, then, facts, effects))
        facts, effects = len(then.facts), len(then.effects)
        rows.append(_row(life, "ended", life.death))
    left_out = max(0, len(rows) - most)
    if left_out:
        rows = rows[: most // 2] + rows[-(most // 2) :]
    for order, row in enumerate(rows, start=1):
        row["order"] = order
    return rows, left_out


def _sighted(
    life: IncarnationTrace, then: Observed, facts: int, effects: int
) -> Iterator[HistoryRow]:
    for fact in then.facts[facts:]:
        yield _row(life, "fact", describe_fact(fact))
    for effect in then.effects[effects:]:
        by = f" by {effect.token}" if effect.token else ""
        yield _row(life, "effect", f"{effect.kind} {effect.key}{by}")


def _row(life: IncarnationTrace, what: What, text: str) -> HistoryRow:
    return {
        "order": 0,
        "incarnation": life.number,
        "lane": "world" if what in ("fact", "effect") else "worker",
        "what": what,
        "text": text,
        "context": {},
        "hits": {},
        "stopped": False,
    }
