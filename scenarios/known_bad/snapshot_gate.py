"""Known bad: the gate and its committer, with one wrong turn each.

The hosts keep their snapshots in a store that does not compare, so all depends on the gate: a
commit that begins late must find it closed. Each class says which oracle catches it. The same host
without the fault is the scenario ``plan-host-plain``, and holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.plan_host.fault_plan import PlannedFaults
from scenarios.plan_host.reference import DIAMOND, UNLUCKY, PlainHost, plan_host
from scenarios.plan_host.requested_graphs import requesting, run
from worker_under_test.checkpoint import Committer, SeqGate, StaleSeq, StoreCAS

if TYPE_CHECKING:
    from harness.scenario import Scenario
    from worker_under_test.checkpoint import Snapshot

WORK = requesting(run("r1", DIAMOND))


class _Open(Committer):
    """A committer whose parts its variants may touch."""

    def __init__(self, gate: SeqGate, store: StoreCAS) -> None:
        super().__init__(gate, store)
        self.gate = gate
        self.store = store


class SavesFirst(_Open):
    """Saves, and asks the gate afterwards (M-01). Caught by ``snapshots-advance`` (COM-06)."""

    async def commit(self, snapshot: Snapshot) -> None:
        """Save, then accept."""
        await self.store.save_if_newer(snapshot)
        self.gate.accept(snapshot)


class NeverReleases(_Open):
    """Keeps the number of a save that failed (M-02). Caught by ``runs-end`` (GAT-11, INV-9)."""

    def _take_back(self, snapshot: Snapshot, failure: BaseException) -> None:
        """Leave the gate as it is."""


class Clears(SeqGate):
    """Forgets the run instead of going back (M-03). Caught by ``snapshots-advance`` (GAT-15)."""

    def release(self, run_id: str, seq: int) -> bool:
        """Delete the record of the run."""
        with self._lock:
            history = self._runs.get(run_id)
            if history is None or history.last != seq:
                return False
            del self._runs[run_id]
            return True


class ReleasesAlways(_Open):
    """Takes the number back after a success (M-04). Caught by ``snapshots-advance`` (GAT-20)."""

    async def commit(self, snapshot: Snapshot) -> None:
        """Commit, and open the gate again."""
        await super().commit(snapshot)
        self.gate.release(snapshot.run_id, snapshot.seq)


class NeverSeeds(_Open):
    """Tells the gate nothing after a restart (M-08). Caught by ``plan-right`` (GAT-26, COM-25)."""

    async def seed_from_store(self, run_id: str) -> None:
        """Leave the gate empty."""


class ReleasesOnRefusal(_Open):
    """Takes back a number that was refused (M-29). Caught by ``snapshots-advance`` (COM-08)."""

    async def commit(self, snapshot: Snapshot) -> None:
        """Commit; after a refusal, open the gate."""
        try:
            await super().commit(snapshot)
        except StaleSeq:
            self.gate.release(snapshot.run_id, snapshot.seq)
            raise


class ClearingHost(PlainHost):
    """A host with a gate that clears."""

    def gate(self) -> SeqGate:
        """Make the gate of this incarnation."""
        return Clears()


def _committing(
    name: str,
    committer: type[_Open],
    oracle: str,
    faults: PlannedFaults = UNLUCKY,
    strike: tuple[str, ...] = ("task.commit.after", "late.commit.before", "late.commit.after"),
) -> Scenario:
    class Host(PlainHost):
        """A host with a committer of its own."""

        def make_committer(self, gate: SeqGate, store: StoreCAS) -> Committer:
            """Join gate and store."""
            return committer(gate, store)

    return plan_host(name, Host, WORK, faults, broken_by(oracle), strike=strike)


SAVED_BEFORE_ACCEPTED = _committing("saved-before-accepted", SavesFirst, "snapshots-advance")

NUMBER_NEVER_RELEASED = _committing(
    "number-never-released",
    NeverReleases,
    "runs-end",
    # The store is busy only after a crash: the control leg, which must hold, does not meet it.
    PlannedFaults(late=frozenset("b"), busy=frozenset("d"), busy_from=1),
)

GATE_CLEARED = plan_host(
    "gate-cleared-by-release",
    ClearingHost,
    WORK,
    UNLUCKY,
    broken_by("snapshots-advance"),
    strike=("late.commit.before", "late.commit.after"),
)

RELEASED_AFTER_SUCCESS = _committing("released-after-success", ReleasesAlways, "snapshots-advance")

GATE_NEVER_SEEDED = _committing("gate-never-seeded", NeverSeeds, "plan-right")

RELEASED_ON_REFUSAL = _committing(
    "released-on-refusal",
    ReleasesOnRefusal,
    "snapshots-advance",
    PlannedFaults(late=frozenset("b"), twice=frozenset("cd")),
)
