"""A failure in sentences: what was done, what broke, what to change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.record.failure_schema import FailureRecord

_RULE = (
    "A restart knows only what is on disk: save a promise before you make it, and mark as done "
    "only what is done."
)


@dataclass(frozen=True, slots=True)
class JudgedPromise:
    """A promise and what was found against it.

    Attributes:
        name: Name of the oracle.
        promise: What must hold.
        found: The facts that break it; none when it was not broken.
    """

    name: str
    promise: str
    found: tuple[str, ...]


def contract(record: FailureRecord) -> tuple[JudgedPromise, ...]:
    """Return every promise: what the scenario is pinned by, the other broken ones, the rest."""
    found: dict[str, list[str]] = {}
    for violation in record["violations"]:
        found.setdefault(violation["oracle"], []).append(violation["message"])
    promises = {row["name"]: row["promise"] for row in record["promises"]}
    pinned = [name for name in found if name == record["pin"].partition(":")[2].partition("@")[0]]
    order = dict.fromkeys([*pinned, *found, *promises])
    return tuple(
        JudgedPromise(name, promises.get(name, ""), tuple(found.get(name, ()))) for name in order
    )


def broken_promises(record: FailureRecord) -> tuple[JudgedPromise, ...]:
    """Return the promises that were broken; the one that the scenario is pinned by first."""
    return tuple(row for row in contract(record) if row.found)


def headline(record: FailureRecord) -> str:
    """Say in one sentence what happened and what broke."""
    first = broken_promises(record)
    what = first[0].found[0] if first else "a promise was broken"
    if not record["strikes"]:
        return f"Without any fault: {what}."
    return f"{happened(record).removesuffix('.')}: {what}."


def happened(record: FailureRecord) -> str:
    """Say in one sentence what was done to the worker."""
    strikes = record["strikes"]
    if not strikes:
        return "It ran without any fault."
    where = ", then at ".join(row["moment"].removesuffix("#1") for row in strikes)
    return f"Killed at {where}, then restarted."


def change(record: FailureRecord) -> tuple[str, ...]:
    """Say what usually restores the promise, and where to look."""
    remedies = {row["name"]: row["remedy"] for row in record["promises"]}
    first = [remedies.get(row.name, "") for row in broken_promises(record)[:1]]
    strikes = record["strikes"]
    if not strikes:
        return (*filter(None, first), "First make it hold without a fault; then strike it.")
    last = strikes[-1]
    where = f"{last['file']}:{last['line']}" if last["file"] else last["moment"]
    passed = (last["passed"][-1:] or ["the start"])[0].partition("[")[0]
    return (
        next(filter(None, first), _RULE),
        f"Look at what happens between {passed} and {where}.",
    )
