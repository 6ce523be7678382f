"""What a reader wants to know first, in sentences: what broke, why, and what to change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.failure_record import FailureRecord, StrikeRow

_NAMED = 5
_RULE = (
    "A restart knows only what was durable at that line. What the worker had promised or done "
    "outside by then has to be durable before it is promised or done, and what it had marked as "
    "done has to be done before it is marked."
)


@dataclass(frozen=True, slots=True)
class PromiseRow:
    """A promise and what was found against it.

    Attributes:
        name: Name of the oracle.
        promise: What must hold.
        found: The facts that break it; none when it was not broken.
    """

    name: str
    promise: str
    found: tuple[str, ...]


def contract(record: FailureRecord) -> tuple[PromiseRow, ...]:
    """Return every promise, the broken ones first, in the order of their first fact."""
    found: dict[str, list[str]] = {}
    for violation in record["violations"]:
        found.setdefault(violation["oracle"], []).append(violation["message"])
    promises = {row["name"]: row["promise"] for row in record["promises"]}
    order = dict.fromkeys([*found, *promises])
    return tuple(
        PromiseRow(name, promises.get(name, ""), tuple(found.get(name, ()))) for name in order
    )


def broken_promises(record: FailureRecord) -> tuple[PromiseRow, ...]:
    """Return the promises that were broken; the one that the scenario is pinned by first."""
    pinned = record["pin"].partition(":")[2]
    broken = [row for row in contract(record) if row.found]
    return tuple(sorted(broken, key=lambda row: row.name != pinned))


def headline(record: FailureRecord) -> str:
    """Say in one sentence what happened and what broke."""
    first = broken_promises(record)
    what = first[0].found[0] if first else "a promise was broken"
    strikes = record["strikes"]
    if not strikes:
        return f"Without any fault: {what}."
    where = ", then at ".join(row["moment"] for row in strikes)
    return f"Killed at {where}, and restarted: {what}."


def why(record: FailureRecord) -> tuple[str, ...]:
    """Say between what the strike fell and what was durable then."""
    sentences: list[str] = []
    for strike in record["strikes"]:
        sentences.append(_between(strike))
        sentences.extend(_durable(record, strike["incarnation"]))
    if not record["strikes"]:
        sentences.append("It breaks in the control leg, so no crash is needed to see it.")
    elif record["control"]["verdict"] == "held":
        sentences.append("Without the strike the same work with the same seed held.")
    return tuple(sentences)


def _between(strike: StrikeRow) -> str:
    passed = strike["passed"][-1:] or ["the start"]
    follow = strike["next_in_control"]
    end = f"; {follow} was never reached" if follow else ""
    return f"The last point passed before the strike at {strike['moment']} was {passed[0]}{end}."


def _durable(record: FailureRecord, incarnation: int) -> list[str]:
    """Compare what the world had seen of an incarnation with what the worker had kept."""
    seen = [
        row["text"]
        for row in record["history"]
        if row["incarnation"] == incarnation and row["lane"] == "world"
    ]
    sentences = []
    if seen:
        more = f" and {len(seen) - _NAMED} more before" if len(seen) > _NAMED else ""
        sentences.append(f"The world had seen last: {'; '.join(seen[-_NAMED:])}{more}.")
    for state in record["states"]:
        if state["incarnation"] == incarnation:
            tables = [t for t in state["tables"] if t["database"].startswith("worker/")]
            if tables:
                held = ", ".join(f"{t['table']} {t['total']}" for t in tables if t["total"])
                sentences.append(f"The worker's disk had, in rows: {held or 'nothing'}.")
            else:
                files = [f["path"] for f in state["files"] if f["path"].startswith("worker/")]
                shown = ", ".join(files[:_NAMED]) or "nothing"
                sentences.append(f"The worker's disk had: {shown}.")
    return sentences


def change(record: FailureRecord) -> tuple[str, ...]:
    """Say where to look."""
    strikes = record["strikes"]
    if not strikes:
        return ("Make the work hold without a fault first; then strike it.",)
    last = strikes[-1]
    where = f"{last['file']}:{last['line']}" if last["file"] else last["moment"]
    passed = last["passed"][-1:] or ["the start"]
    return (
        f"Look at {where}, marked below, and at what was done between {passed[0]} and there.",
        _RULE,
        "When it is changed, run the command under “Run it again”: it answers “holds now”.",
    )
