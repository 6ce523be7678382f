"""What a reader wants to know first, in sentences: what broke, why, and what to change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.failure_record import FailureRecord, StateRow, StrikeRow

_NAMED = 2
_SEEN = 2
_RULE = (
    "By that line everything that the worker has promised or done outside must be durable, and "
    "everything that it has marked as done must be done: a restart knows only what is on the disk."
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
    """Say between what the strike fell, and what the world and the disk had then."""
    if not record["strikes"]:
        return ("It breaks in the control leg, so no crash is needed to see it.",)
    return tuple(
        sentence
        for strike in record["strikes"]
        for sentence in (_between(strike), *_durable(record, strike["incarnation"]))
    )


def _between(strike: StrikeRow) -> str:
    passed = strike["passed"][-1:] or ["the start"]
    follow = strike["next_in_control"]
    end = f", before {follow}" if follow else ""
    return f"Killed after {passed[0]}{end}."


def _durable(record: FailureRecord, incarnation: int) -> list[str]:
    """Compare what the world had seen of an incarnation with what the worker had kept."""
    seen = [
        row["text"]
        for row in record["history"]
        if row["incarnation"] == incarnation and row["lane"] == "world"
    ]
    sentences = []
    if seen:
        sentences.append(f"What the world saw last: {'; '.join(seen[-_SEEN:])}.")
    sentences += [
        f"What was on the worker's disk: {_on_disk(state)}."
        for state in record["states"]
        if state["incarnation"] == incarnation
    ]
    return sentences


def _on_disk(state: StateRow) -> str:
    tables = [table for table in state["tables"] if table["database"].startswith("worker/")]
    files = [
        file["path"]
        for file in state["files"]
        if file["path"].startswith("worker/")
        and file["change"] != "removed"
        and not file["checksum"].startswith("rows:")
    ]
    found = [
        f"{table['table']} {table['total']} row{'s' * (table['total'] != 1)}"
        for table in tables
        if table["total"]
    ]
    found += files[:_NAMED]
    if len(files) > _NAMED:
        more = len(files) - _NAMED
        found.append(f"{more} more file{'s' * (more != 1)}")
    empty = [table["table"] for table in tables if not table["total"]]
    end = f"; nothing in {', '.join(empty)}" if empty else ""
    return (", ".join(found) or "nothing") + end


def change(record: FailureRecord) -> tuple[str, ...]:
    """Say where to look."""
    strikes = record["strikes"]
    if not strikes:
        return ("Make the work hold without a fault first; then strike it.",)
    last = strikes[-1]
    where = f"{last['file']}:{last['line']}" if last["file"] else last["moment"]
    passed = last["passed"][-1:] or ["the start"]
    return (f"Look at {where} and at what is done between {passed[0]} and there.", _RULE)
