"""Known bad: stores of snapshots that break the contract, under a host that is right."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.plan_host.fault_plan import PlannedFaults
from scenarios.plan_host.host import LATE_S, PlanHost
from scenarios.plan_host.reference import DIAMOND, TABLE, plan_host
from scenarios.plan_host.requested_graphs import requesting, run
from worker_under_test.checkpoint import Committer, NotFound, Snapshot, load_if_any
from worker_under_test.checkpoint.stores.rules import require_newer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from scenarios.plan_host.fault_plan import BothStores
    from worker_under_test.checkpoint import SeqGate, StoreCAS


class FailureIsAbsence:
    """A load that fails says that there is none (M-05). Caught by ``plan-right`` (STO-04, ERR-05).

    The host takes it for a first run, and everything happens again.

    Args:
        inner: The store behind it.
    """

    def __init__(self, inner: BothStores) -> None:
        self._inner = inner

    async def save_if_newer(self, snapshot: Snapshot) -> None:
        """Save if newer."""
        await self._inner.save_if_newer(snapshot)

    async def load(self, run_id: str) -> Snapshot:
        """Load, or say that there is nothing."""
        try:
            return await self._inner.load(run_id)
        except sqlite3.Error as error:
            raise NotFound(run_id) from error


class FailureIsAbsenceHost(PlanHost):
    """A host on such a store."""

    def cas(self, store: BothStores) -> StoreCAS:
        """Make the store that commits go to."""
        return FailureIsAbsence(store)


class ReadThenWrite:
    """Reads, compares, and writes without a condition (M-06). Caught by ``snapshots-advance``.

    Between the two there is time for a newer snapshot, which is then overwritten (STO-13).

    Args:
        inner: The store behind it.
        slow: Steps whose write comes late.
        sleep: Waits in virtual time.
    """

    def __init__(
        self, inner: BothStores, slow: frozenset[str], sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        self._inner = inner
        self._slow = slow
        self._sleep = sleep

    async def save_if_newer(self, snapshot: Snapshot) -> None:
        """Compare, then save."""
        require_newer(await load_if_any(self, snapshot.run_id), snapshot)
        if snapshot.done[-1] in self._slow:
            await self._sleep(2 * LATE_S)
        await self._inner.save(snapshot)

    async def load(self, run_id: str) -> Snapshot:
        """Load."""
        return await self._inner.load(run_id)


class ReadThenWriteHost(PlanHost):
    """A host on such a store."""

    def cas(self, store: BothStores) -> StoreCAS:
        """Make the store that commits go to."""
        return ReadThenWrite(store, self.faults.overtaken, self.scheduler.sleep)


class KeepsTheObject:
    """A table in memory, written out whole at each save, that keeps the caller's objects (M-07).

    What the caller does with its object afterwards is written out with the next save, as if it had
    been committed. Caught by ``snapshots-advance`` (SNP-12).

    Args:
        path: The file that the table is written to.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: dict[str, Snapshot] = {}
        if path.exists():
            rows = json.loads(path.read_text(encoding="utf-8"))
            self._kept = {row[0]: Snapshot(*row) for row in rows}

    async def save_if_newer(self, snapshot: Snapshot) -> None:
        """Keep the object, and write the table out."""
        require_newer(self._kept.get(snapshot.run_id), snapshot)
        self._kept[snapshot.run_id] = snapshot
        rows = [
            [kept.run_id, kept.seq, kept.status, list(kept.done)] for kept in self._kept.values()
        ]
        beside = self._path.with_suffix(".tmp")
        beside.write_text(json.dumps(rows), encoding="utf-8")
        beside.replace(self._path)

    async def load(self, run_id: str) -> Snapshot:
        """Load."""
        if run_id not in self._kept:
            raise NotFound(run_id)
        return self._kept[run_id]


class Reusing(Committer):
    """A caller that has one list of completions, and fills it anew for each snapshot.

    A `Snapshot` copies what it is given; this caller goes around that.
    """

    def __init__(self, gate: SeqGate | None, store: StoreCAS | None) -> None:
        super().__init__(gate, store)
        self._list: list[str] = []

    async def commit(self, snapshot: Snapshot) -> None:
        """Put the completions into the one list, the list into the snapshot, and commit."""
        self._list[:] = snapshot.done
        object.__setattr__(snapshot, "done", self._list)
        await super().commit(snapshot)


class ReusingHost(PlanHost):
    """A host with such a caller, on such a store."""

    def cas(self, store: BothStores) -> StoreCAS:  # noqa: ARG002 - it has a store of its own
        """Make the store that commits go to."""
        return KeepsTheObject(self.site.worker_dir / TABLE)

    def make_committer(self, gate: SeqGate, store: StoreCAS) -> Committer:
        """Join gate and store."""
        return Reusing(gate, store)


FAILURE_IS_ABSENCE = plan_host(
    "failure-is-absence",
    FailureIsAbsenceHost,
    requesting(run("r1", DIAMOND)),
    PlannedFaults(late=frozenset("b"), busy_loads=2),
    broken_by("plan-right"),
    strike=("task.commit.after", "late.commit.before"),
)

READ_THEN_WRITE = plan_host(
    "read-then-write",
    ReadThenWriteHost,
    requesting(run("r1", DIAMOND)),
    PlannedFaults(overtaken=frozenset("b")),
    broken_by("snapshots-advance"),
    strike=("late.commit.after",),
)

KEEPS_THE_OBJECT = plan_host(
    "keeps-the-object",
    ReusingHost,
    # The same steps in both, so that at rest both runs look right.
    requesting(run("r1", "a b c"), run("r2", "a b c"), fresh="a b c"),
    PlannedFaults(),
    broken_by("snapshots-advance"),
    strike=("task.commit.after", "next.commit.after"),
)
