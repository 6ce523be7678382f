"""What orders change in the local database, inside the transaction of their inbox row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_under_test.domain.attempt import UNFINISHED, AttemptState
from worker_under_test.domain.json_value import canonical
from worker_under_test.domain.order import (
    Cancel,
    Directives,
    Drain,
    LateAnswer,
    Limit,
    Offer,
    Reconcile,
)
from worker_under_test.ports.local_store import Remaining

if TYPE_CHECKING:
    import aiosqlite

    from worker_under_test.adapters.sqlite_connection import SqliteConnection
    from worker_under_test.domain.json_value import JsonValue
    from worker_under_test.domain.order import Order

_REMAINING_SQL = f"""
WITH counted (open_attempts, unsent) AS (
    SELECT (SELECT count(*) FROM attempts
            WHERE state IN ({", ".join(f"'{state}'" for state in UNFINISHED)})),
           (SELECT count(*) FROM events WHERE reported = 0)
)
SELECT open_attempts, unsent, unknown.command_id FROM counted
LEFT JOIN (SELECT command_id, position FROM attempts JOIN inbox USING (command_id)
           WHERE attempts.state = 'UNKNOWN'
             AND command_id NOT IN (SELECT command_id FROM reconciliations)) AS unknown
ORDER BY unknown.position
"""  # noqa: S608 - made of our own constants

NOT_KNOWN = "none"
"""What a cancel found if its target is not in the inbox."""


async def save_order(
    transaction: aiosqlite.Connection, order: Order, command_id: str
) -> dict[str, JsonValue]:
    """Save what an order changes.

    Args:
        transaction: The open transaction.
        order: The order.
        command_id: The command that carries it.

    Returns:
        Body of the order's answer.
    """
    match order:
        case Drain(draining):
            await transaction.execute("UPDATE directives SET draining = ?", (draining,))
            return {"draining": draining}
        case Limit(attempts):
            await transaction.execute("UPDATE directives SET capacity = ?", (attempts,))
            return {"attempts": attempts}
        case Offer(capability, version, offered):
            await transaction.execute(
                "DELETE FROM withdrawn WHERE (capability, version) = (?, ?)"
                if offered
                else "INSERT OR IGNORE INTO withdrawn (capability, version) VALUES (?, ?)",
                (capability, version),
            )
            return {"capability": capability, "version": version, "offered": offered}
        case Cancel(target):
            return {
                "target": target,
                "found": await _save_cancel(transaction, target, command_id),
            }
        case Reconcile():
            return await _save_answer(transaction, order, command_id)
        case LateAnswer():
            return await _save_late_answer(transaction, order, command_id)


async def _found(transaction: aiosqlite.Connection, target: str) -> str:
    rows = await transaction.execute_fetchall(
        "SELECT state FROM attempts WHERE command_id = ?", (target,)
    )
    return next((str(state) for (state,) in rows), NOT_KNOWN)


async def _save_answer(
    transaction: aiosqlite.Connection, order: Reconcile, command_id: str
) -> dict[str, JsonValue]:
    """Settle what is unknown, once: the first answer is the one that counts (UNK-06)."""
    found = await _found(transaction, order.target)
    if found == AttemptState.UNKNOWN:
        await transaction.execute(
            "INSERT OR IGNORE INTO reconciliations (command_id, answer, ordered_by)"
            " VALUES (?, ?, ?)",
            (order.target, order.answer, command_id),
        )
    rows = await transaction.execute_fetchall(
        "SELECT answer FROM reconciliations WHERE command_id = ?", (order.target,)
    )
    settled = next((str(answer) for (answer,) in rows), None)
    return {"target": order.target, "found": found, "settled": settled}


async def _save_late_answer(
    transaction: aiosqlite.Connection, order: LateAnswer, command_id: str
) -> dict[str, JsonValue]:
    """Keep what the outside said beside the attempt, whose result stays what it is (UNK-07)."""
    found = await _found(transaction, order.target)
    if found != NOT_KNOWN:
        await transaction.execute(
            "INSERT INTO late_answers (ordered_by, command_id, said) VALUES (?, ?, ?)",
            (command_id, order.target, canonical(order.said)),
        )
    return {"target": order.target, "found": found}


async def _save_cancel(transaction: aiosqlite.Connection, target: str, command_id: str) -> str:
    found = await _found(transaction, target)
    if found in UNFINISHED:
        await transaction.execute(
            "INSERT OR IGNORE INTO cancels (command_id, ordered_by) VALUES (?, ?)",
            (target, command_id),
        )
    return found


async def read_directives(database: SqliteConnection) -> Directives:
    """Read what the saved orders add up to.

    Args:
        database: The open database.

    Returns:
        The directives.
    """
    ((draining, limit),) = await database.read("SELECT draining, capacity FROM directives")
    withdrawn = await database.read("SELECT capability, version FROM withdrawn")
    return Directives(
        draining=bool(draining),
        limit=limit,
        withdrawn=frozenset((capability, version) for capability, version in withdrawn),
    )


async def read_remaining(database: SqliteConnection) -> Remaining:
    """Read what is still to be done, and what waits for a person (DRN-07).

    Args:
        database: The open database.

    Returns:
        All of one moment: one statement reads it.
    """
    rows = await database.read(_REMAINING_SQL)
    (open_attempts, unsent, _) = rows[0]
    return Remaining(open_attempts, unsent, tuple(name for *_, name in rows if name is not None))


async def has_cancel(transaction: aiosqlite.Connection, attempt_id: str) -> bool:
    """Tell whether an attempt never started and is not to start any more (ADM-07).

    Args:
        transaction: The open transaction.
        attempt_id: The attempt.
    """
    rows = await transaction.execute_fetchall(
        "SELECT 1 FROM attempts JOIN cancels USING (command_id) WHERE attempt_id = ? AND state = ?",
        (attempt_id, AttemptState.PENDING),
    )
    return bool(list(rows))
