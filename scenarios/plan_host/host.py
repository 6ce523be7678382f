"""The plan host: seed, load, plan, run in parallel lanes, one commit per step, close (ORC-04).

Its recovery rule is the plainest one: a step in ``run`` is run, whatever an earlier incarnation did
of it. So the ledger shows every execution, and with it what a plan trusts wrongly or forgets.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING

from harness.points import crash_point
from harness.world.ledger import EffectLedger
from scenarios.plan_host.fault_plan import BothStores, Busy, PlannedFaults
from scenarios.plan_host.incarnation_log import IncarnationLog
from scenarios.plan_host.requested_graphs import graph_of
from worker_under_test.checkpoint import (
    Committer,
    Plan,
    SeqGate,
    Snapshot,
    StaleSeq,
    Status,
    StepDef,
    StoreCAS,
    build_plan,
    load_if_any,
)
from worker_under_test.checkpoint.graph import clean
from worker_under_test.checkpoint.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.deterministic_asyncio import Scheduler
    from harness.model.site import Site
    from harness.model.workload import Command

DATABASE = "runs.db"

LATE_S = 10.0
"""How late late work or a late commit is, in virtual seconds: everything else goes first."""

RETRY_S = 20.0
"""How long the host waits after a failure of the store, in seconds of virtual time."""

TRIES = 5
"""How often the host tries to commit a step or to load before it leaves the run as it is."""

BUSY_TIMEOUT_S = 0.05
"""How long SQLite waits for another process, in seconds of real time."""


class GaveUpError(Exception):
    """The run is left as it is stored, for the next incarnation or another process."""


class PlanHost:
    """One incarnation of the host. A known-bad host overrides one of its methods.

    Args:
        site: Where it lives.
        faults: What goes slow and what fails.
        scheduler: Orders its I/O, and keeps its time.
    """

    def __init__(self, site: Site, faults: PlannedFaults, scheduler: Scheduler) -> None:
        self.site = site
        self.faults = faults
        self.scheduler = scheduler
        self.log = IncarnationLog(site.worker_dir)
        self.ledger = EffectLedger(site.world_dir)
        self.committer: Committer
        self.store: StoreCAS
        self.turn = 0

    def gate(self) -> SeqGate:
        """Make the gate of this incarnation."""
        return SeqGate()

    def cas(self, store: BothStores) -> StoreCAS:
        """Make the store that commits go to, of the one that is there."""
        return store

    def make_committer(self, gate: SeqGate, store: StoreCAS) -> Committer:
        """Join gate and store."""
        return Committer(gate, store)

    def run_id(self, command: Command) -> str:
        """Name the run of a command, from what is saved (SNP-02)."""
        return command.command_id

    def graph(self, command: Command, crashes: int) -> list[StepDef]:
        """Read the graph of a command that is in force now."""
        return [
            StepDef(step["id"], depends_on=step["depends_on"], isolated=step["isolated"])
            for step in graph_of(command, crashes)
        ]

    def plan(self, graph: Sequence[StepDef], snapshot: Snapshot | None) -> Plan:
        """Decide what is left."""
        return build_plan(graph, snapshot)

    def base(self, graph: Sequence[StepDef], plan: Plan, snapshot: Snapshot | None) -> list[str]:
        """Choose the completions that the next snapshot starts from (ORC-11)."""
        known = {step.id for step in graph}
        loaded = snapshot.done if snapshot is not None else ()
        return [*plan.skip, *(step_id for step_id in loaded if step_id not in known)]

    def finish(self, run: Run, step_id: str, base: tuple[str, ...]) -> Snapshot:  # noqa: ARG002
        """Take number and completions for a finished step; nothing comes in between (ORC-05).

        Args:
            run: The run.
            step_id: The step.
            base: The completions that were known when the step began.
        """
        run.done.append(step_id)
        run.seq += 1
        return Snapshot(run.run_id, run.seq, Status.RUNNING, tuple(run.done))

    async def live(self) -> None:
        """Work off every command that was offered, and end."""
        crashes = self.log.begin()
        path = self.site.worker_dir / DATABASE
        async with await SqliteStore.open(path, busy_timeout_s=BUSY_TIMEOUT_S) as opened:
            failing = crashes >= self.faults.busy_from
            busy = Busy(
                self.scheduler.serialize(opened),
                set(self.faults.busy) if failing else set(),
                self.faults.busy_loads if failing and crashes else 0,
            )
            self.store = self.cas(busy)
            self.committer = self.make_committer(self.gate(), self.store)
            for command in self.site.offered:
                if command.command_id not in self.log.ended():
                    await self._work_off(command, self.graph(command, crashes))
        self.log.end()

    async def _work_off(self, command: Command, graph: list[StepDef]) -> None:
        self.turn += 1
        run = Run(self, command.command_id, self.run_id(command), graph)
        ended = False
        try:
            ended = await run.live()
        except* GaveUpError:
            pass  # the run stays as it is stored
        if ended:
            crash_point("run.end.before", run=run.name)
            self.log.end_run(command.command_id)

    async def load(self, run_id: str) -> Snapshot | None:
        """Seed the gate and load; only "there is none" means a first run (ERR-05)."""
        for _ in range(TRIES):
            try:
                await self.committer.seed_from_store(run_id)
                return await load_if_any(self.store, run_id)
            except sqlite3.OperationalError:
                await self.scheduler.sleep(RETRY_S)
        raise GaveUpError(run_id)


class Run:
    """One run in one incarnation.

    Args:
        host: The host.
        name: The command that asked for it; names its effects.
        run_id: Identity of its snapshots.
        graph: Its graph.
    """

    def __init__(self, host: PlanHost, name: str, run_id: str, graph: Sequence[StepDef]) -> None:
        self.host = host
        self.name = name
        self.run_id = run_id
        self.graph = graph
        self.done: list[str] = []
        self.seq = 0
        self._resumed = False
        self._committed: dict[str, asyncio.Event] = {}

    async def live(self) -> bool:
        """Run what is left; return whether the run has ended."""
        await self._receive_late()
        snapshot = await self.host.load(self.run_id)
        plan = self.host.plan(self.graph, snapshot)
        if plan.blocked and not plan.run:
            return False
        self.done = self.host.base(self.graph, plan, snapshot)
        self.seq = snapshot.seq if snapshot is not None else 0
        self._resumed = snapshot is not None
        await self._run_all(plan.run)
        if snapshot is None or not snapshot.is_terminal:
            await self._close()
        return True

    async def _receive_late(self) -> None:
        """Let a commit arrive that an earlier incarnation left in flight (COM-25)."""
        sent = self.host.log.sent(self.run_id)
        if sent is not None:
            await self.host.load(self.run_id)
            with suppress(StaleSeq):
                await self.host.committer.commit(sent)

    async def _run_all(self, step_ids: Sequence[str]) -> None:
        kept = clean(self.graph)
        self._committed = {step_id: asyncio.Event() for step_id in step_ids}
        async with asyncio.TaskGroup() as lanes:
            for number, step in enumerate(kept.steps):
                if step.id in self._committed:
                    before = range(number) if kept.by_position[number] else kept.named[number]
                    waits = [
                        self._committed[kept.steps[other].id]
                        for other in before
                        if kept.steps[other].id in self._committed
                    ]
                    lanes.create_task(self._step(step.id, waits))

    async def _step(self, step_id: str, waits: Sequence[asyncio.Event]) -> None:
        for event in waits:
            await event.wait()
        base = tuple(self.done)
        about = {"run": self.name, "step": step_id}
        crash_point("task.run.before", **about)
        if step_id in self.host.faults.slow:
            await self.host.scheduler.sleep(LATE_S)
            crash_point("slow.run.before", **about)
        self.host.ledger.record("step", f"{self.name}/{step_id}", str(self.host.site.incarnation))
        crash_point("task.run.after", **about)
        # Lanes that can begin now do so before this one records anything.
        await self.host.scheduler.sleep(0)
        snapshot = self.host.finish(self, step_id, base)
        await self._land(snapshot, step_id)
        crash_point("task.commit.after", **about)
        self._tell_rare(step_id, about)
        self._committed[step_id].set()

    def _tell_rare(self, step_id: str, about: dict[str, str]) -> None:
        # A matrix that strikes each label once strikes these moments only if they have their own.
        if step_id in self.host.faults.late | self.host.faults.overtaken:
            crash_point("late.commit.after", **about)
        if self._resumed:
            crash_point("resume.commit.after", **about)
        if self.host.turn > 1:
            crash_point("next.commit.after", **about)

    async def _land(self, snapshot: Snapshot, step_id: str) -> None:
        if step_id in self.host.faults.late:
            self.host.log.send(snapshot)
            await self.host.scheduler.sleep(LATE_S)
            crash_point("late.commit.before", run=self.name, step=step_id)
        landed = await self._commit(snapshot, step_id)
        if step_id in self.host.faults.twice:
            with suppress(StaleSeq):
                await self.host.committer.commit(landed)

    async def _commit(self, snapshot: Snapshot, step_id: str) -> Snapshot:
        """Commit; load, merge and commit again when something newer is there (COM-16..COM-18)."""
        for _ in range(TRIES):
            try:
                await self.host.committer.commit(snapshot)
                return snapshot
            except StaleSeq:
                stored = await self.host.load(self.run_id)
                if stored is not None and stored.is_terminal:
                    raise GaveUpError(self.run_id) from None
                if stored is not None and step_id in stored.done:
                    return stored
                snapshot = self._merged(stored, step_id)
            except sqlite3.OperationalError:
                await self.host.scheduler.sleep(RETRY_S)
        raise GaveUpError(self.run_id)

    def _merged(self, stored: Snapshot | None, step_id: str) -> Snapshot:
        done = dict.fromkeys((*(stored.done if stored else ()), *self.done, step_id))
        self.done = list(done)
        # The number follows what is stored, whatever was tried before (ORC-05).
        seq = (stored.seq if stored else 0) + 1
        self.seq = max(self.seq, seq)
        return Snapshot(self.run_id, seq, Status.RUNNING, self.done)

    async def _close(self) -> None:
        """Commit that the run has ended (ORC-07)."""
        for _ in range(TRIES):
            self.seq += 1
            try:
                await self.host.committer.commit(
                    Snapshot(self.run_id, self.seq, Status.COMPLETED, tuple(self.done))
                )
                return
            except StaleSeq:
                stored = await self.host.load(self.run_id)
                self.seq = stored.seq if stored is not None else 0
            except sqlite3.OperationalError:
                await self.host.scheduler.sleep(RETRY_S)
        raise GaveUpError(self.run_id)
