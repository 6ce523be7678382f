"""The local store on SQLite (ATT-01): inbox, attempts, checkpoints, results, events, decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.adapters.sqlite_connection import SqliteConnection
from worker_under_test.adapters.sqlite_orders import (
    has_cancel,
    read_directives,
    read_remaining,
    save_order,
)
from worker_under_test.adapters.sqlite_rows import (
    checkpoint_from,
    checkpoint_text,
    event_from,
    unfinished_from,
)
from worker_under_test.adapters.sqlite_steps import SqliteSteps
from worker_under_test.domain.attempt import UNFINISHED, AttemptState, require_transition
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.event import FINAL_STATE, Event, EventKind
from worker_under_test.domain.json_value import canonical
from worker_under_test.domain.order import CONTROL_PREFIX
from worker_under_test.domain.registration import Incarnation
from worker_under_test.ports.local_store import Acceptance, Accepted, Remaining, Standing, Started

if TYPE_CHECKING:
    from pathlib import Path

    import aiosqlite

    from worker_under_test.domain.artifact import Artifact
    from worker_under_test.domain.attempt import Attempt, UnfinishedAttempt
    from worker_under_test.domain.command import Command
    from worker_under_test.domain.order import Directives, Order
    from worker_under_test.domain.progress import Checkpoint
    from worker_under_test.domain.recovery import RecoveryDecision

_UNFINISHED_SQL = f"""
SELECT attempts.attempt_id, attempts.state, inbox.command_id, inbox.capability, inbox.version,
       inbox.payload, checkpoints.seq, checkpoints.data,
       inbox.command_id IN (SELECT command_id FROM cancels)
FROM attempts JOIN inbox USING (command_id) LEFT JOIN checkpoints USING (attempt_id)
WHERE attempts.state IN ({", ".join(f"'{state}'" for state in UNFINISHED)})
ORDER BY inbox.position
"""  # noqa: S608 - made of our own constants

_OPEN = ", ".join(f"'{state}'" for state in UNFINISHED)

_STANDING_SQL = f"""
SELECT EXISTS (SELECT 1 FROM inbox WHERE command_id = ?),
       (SELECT count(*) FROM attempts JOIN inbox USING (command_id)
        WHERE attempts.state IN ({_OPEN}) AND capability NOT LIKE '{CONTROL_PREFIX}%')
"""  # noqa: S608 - made of our own constants

_OF_VALUE_SQL = f"""
SELECT command_id FROM attempts WHERE state IN ({_OPEN})
UNION SELECT command_id FROM attempts WHERE state = 'UNKNOWN'
    AND command_id NOT IN (SELECT command_id FROM reconciliations)
UNION SELECT command_id FROM events WHERE reported = 0
"""  # noqa: S608 - made of our own constants


class SqliteStore:
    """A `LocalStore` in one SQLite file.

    Args:
        path: The database file; its directory exists.
        init: The file may be made if there is none (IDN-02).
    """

    def __init__(self, path: Path, *, init: bool = False) -> None:
        self._database = SqliteConnection(path, init=init)
        self.steps = SqliteSteps(self._database)
        """Snapshots and results of steps, in the same database."""

    async def open(self) -> None:
        """Open the database; see `SqliteConnection.open`."""
        await self._database.open()

    async def close(self) -> None:
        """Close the database and join its thread."""
        await self._database.close()

    async def begin_incarnation(self, instance_id: str) -> Incarnation:
        """Count this start; the first one saves the identity (IDN-06)."""
        async with self._database.transaction() as transaction:
            rows = await transaction.execute_fetchall(
                "INSERT INTO identity (one, instance_id, boot) VALUES (1, ?, 1)"
                " ON CONFLICT (one) DO UPDATE SET boot = boot + 1 RETURNING instance_id, boot",
                (instance_id,),
            )
        ((saved, boot),) = rows
        return Incarnation(instance_id=saved, boot=boot)

    async def accept(self, command: Command, attempt_id: str) -> Accepted:
        """Save inbox row and pending attempt, or find what is saved (INB-02, INB-06, INB-12)."""
        digest = command.digest
        async with self._database.transaction() as transaction:
            known = await _known(transaction, command, digest)
            if known is not None:
                return known
            await self._insert_command(transaction, command, digest)
            crash_point("inbox.save.mid", command=command.command_id)
            await self._insert_attempt(transaction, command, attempt_id)
            crash_point("inbox.commit.before", command=command.command_id)
        return Accepted(Acceptance.ACCEPTED, attempt_id)

    async def accept_order(
        self, command: Command, order: Order, attempt_id: str, event_id: str
    ) -> Accepted:
        """Save inbox row, change and answer in one transaction (DRN-02, AMB-14)."""
        digest = command.digest
        async with self._database.transaction() as transaction:
            known = await _known(transaction, command, digest)
            if known is not None:
                return known
            await self._insert_command(transaction, command, digest)
            await self._insert_attempt(transaction, command, attempt_id)
            crash_point("order.save.mid", order=command.capability)
            body = await save_order(transaction, order, command.command_id)
            # The attempt of an order begins and ends in this transaction.
            await _move(transaction, attempt_id, AttemptState.RUNNING)
            answer = Event(event_id, command.command_id, attempt_id, EventKind.SUCCEEDED, body)
            await self._insert_result(transaction, answer, ())
            await self._insert_event(transaction, answer)
            crash_point("order.commit.before", order=command.capability)
        return Accepted(Acceptance.ACCEPTED, attempt_id)

    async def standing(self, command_id: str) -> Standing:
        """Count what is open, orders aside, and look the command up (ADM-02)."""
        ((known, count),) = await self._database.read(_STANDING_SQL, command_id)
        return Standing(known=bool(known), open_attempts=count)

    async def directives(self) -> Directives:
        """Return what the saved orders add up to (DRN-01)."""
        return await read_directives(self._database)

    async def remaining(self) -> Remaining:
        """Say what is still to be done, and what waits for a person (DRN-07)."""
        return await read_remaining(self._database)

    async def commands_of_value(self) -> frozenset[str]:
        """Return the commands whose files must stay (CLN-01, CLN-02)."""
        rows = await self._database.read(_OF_VALUE_SQL)
        return frozenset(command_id for (command_id,) in rows)

    async def _insert_command(
        self, transaction: aiosqlite.Connection, command: Command, digest: str
    ) -> None:
        await transaction.execute(
            "INSERT INTO inbox (command_id, capability, version, payload, digest, state)"
            " VALUES (?, ?, ?, ?, ?, 'received')",
            (
                command.command_id,
                command.capability,
                command.version,
                canonical(command.payload),
                digest,
            ),
        )

    async def _insert_attempt(
        self, transaction: aiosqlite.Connection, command: Command, attempt_id: str
    ) -> None:
        await transaction.execute(
            "INSERT INTO attempts (attempt_id, command_id, state) VALUES (?, ?, ?)",
            (attempt_id, command.command_id, AttemptState.PENDING),
        )

    async def unfinished(self) -> list[UnfinishedAttempt]:
        """Return the attempts that are not terminal, in the order of acceptance (REC-17)."""
        return [unfinished_from(row) for row in await self._database.read(_UNFINISHED_SQL)]

    async def decide(self, decision: RecoveryDecision) -> None:
        """Save a decision; an attempt that had begun becomes RECOVERING with it."""
        async with self._database.transaction() as transaction:
            await transaction.execute(
                "INSERT INTO recovery_decisions (boot, attempt_id, command_id, found_state,"
                " found_checkpoint_seq, decision, reason) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    decision.boot,
                    decision.attempt_id,
                    decision.command_id,
                    decision.found_state,
                    decision.found_checkpoint_seq,
                    decision.decision,
                    decision.reason,
                ),
            )
            if decision.found_state is not AttemptState.PENDING:
                await _move(transaction, decision.attempt_id, AttemptState.RECOVERING)

    async def start(self, attempt_id: str, *, acknowledged: bool) -> Started:
        """Save that an attempt is RUNNING, unless it was cancelled first (INB-08, ADM-07)."""
        async with self._database.transaction() as transaction:
            if await has_cancel(transaction, attempt_id):
                return Started(running=False)
            await _move(transaction, attempt_id, AttemptState.RUNNING)
            if acknowledged:
                await _advance_inbox(transaction, attempt_id, "acknowledged")
            rows = await transaction.execute_fetchall(
                "SELECT seq, data FROM checkpoints WHERE attempt_id = ?", (attempt_id,)
            )
        last = next((checkpoint_from(seq, data) for seq, data in rows), None)
        return Started(running=True, checkpoint=last)

    async def save_checkpoint(self, attempt: Attempt, checkpoint: Checkpoint) -> bool:
        """Save a checkpoint; a number that is not higher changes nothing (INV-7)."""
        async with self._database.transaction() as transaction:
            saved = await transaction.execute_fetchall(
                "INSERT INTO checkpoints (attempt_id, seq, data) VALUES (?, ?, ?)"
                " ON CONFLICT (attempt_id) DO UPDATE SET seq = excluded.seq, data = excluded.data"
                " WHERE excluded.seq > checkpoints.seq RETURNING seq",
                (attempt.attempt_id, checkpoint.seq, checkpoint_text(checkpoint)),
            )
            crash_point("checkpoint.save.mid", command=attempt.command.command_id)
        return bool(list(saved))

    async def finish(self, event: Event, artifacts: tuple[Artifact, ...]) -> None:
        """Save result, event, artifacts and terminal state in one transaction (ATT-02, INV-6)."""
        async with self._database.transaction() as transaction:
            await self._insert_result(transaction, event, artifacts)
            crash_point("result.save.mid", event=event.kind, command=event.command_id)
            await self._insert_event(transaction, event)
            crash_point("result.commit.before", event=event.kind, command=event.command_id)

    async def _insert_result(
        self, transaction: aiosqlite.Connection, event: Event, artifacts: tuple[Artifact, ...]
    ) -> None:
        await _move(transaction, event.attempt_id, FINAL_STATE[event.kind])
        await transaction.execute(
            "INSERT INTO results (attempt_id, kind, body) VALUES (?, ?, ?)",
            (event.attempt_id, event.kind, canonical(event.body)),
        )
        await transaction.executemany(
            "INSERT INTO artifacts (command_id, name, attempt_id, path, size, sha256)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            [
                (event.command_id, each.name, event.attempt_id, each.path, each.size, each.sha256)
                for each in artifacts
            ],
        )

    async def _insert_event(self, transaction: aiosqlite.Connection, event: Event) -> None:
        await transaction.execute(
            "INSERT INTO events (event_id, command_id, attempt_id, kind, body)"
            " VALUES (?, ?, ?, ?, ?)",
            (
                event.event_id,
                event.command_id,
                event.attempt_id,
                event.kind,
                canonical(event.body),
            ),
        )
        await _advance_inbox(transaction, event.attempt_id, "processed")

    async def unreported(self) -> list[Event]:
        """Return the events not marked reported, in the order of saving (OUT-31)."""
        rows = await self._database.read(
            "SELECT event_id, command_id, attempt_id, kind, body FROM events"
            " WHERE reported = 0 ORDER BY position"
        )
        return [event_from(row) for row in rows]

    async def mark_reported(self, event: Event) -> None:
        """Mark an event that the server has stored (ATT-04)."""
        async with self._database.transaction() as transaction:
            await transaction.execute(
                "UPDATE events SET reported = 1 WHERE event_id = ?", (event.event_id,)
            )
            crash_point("event.mark.mid", event=event.kind, command=event.command_id)


async def _known(
    transaction: aiosqlite.Connection, command: Command, digest: str
) -> Accepted | None:
    """Find a command that is in the inbox, and compare its content (INB-06, INB-12)."""
    rows = await transaction.execute_fetchall(
        "SELECT inbox.digest, attempts.attempt_id FROM inbox"
        " JOIN attempts USING (command_id) WHERE command_id = ?",
        (command.command_id,),
    )
    for saved_digest, saved_attempt in rows:
        same = saved_digest == digest
        return Accepted(Acceptance.REPEATED if same else Acceptance.CONFLICTING, saved_attempt)
    return None


async def _move(transaction: aiosqlite.Connection, attempt_id: str, new: AttemptState) -> None:
    """Change an attempt's state by the transition table, inside a transaction (ATT-09)."""
    rows = await transaction.execute_fetchall(
        "SELECT state FROM attempts WHERE attempt_id = ?", (attempt_id,)
    )
    old = next((AttemptState(state) for (state,) in rows), None)
    if old is None:
        raise DomainError(Kind.NOT_FOUND, f"no attempt {attempt_id!r} in the local store")
    require_transition(old, new)
    await transaction.execute(
        "UPDATE attempts SET state = ? WHERE attempt_id = ?", (new, attempt_id)
    )


async def _advance_inbox(transaction: aiosqlite.Connection, attempt_id: str, state: str) -> None:
    await transaction.execute(
        "UPDATE inbox SET state = ?"
        " WHERE command_id = (SELECT command_id FROM attempts WHERE attempt_id = ?)",
        (state, attempt_id),
    )
