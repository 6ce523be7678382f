"""The capability ``workflow`` on a store and an outside in memory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

import harness.points
from worker_under_test.capabilities.workflow import Workflow
from worker_under_test.checkpoint import DamagedRecordError, Snapshot
from worker_under_test.checkpoint.stores.memory import MemoryStore
from worker_under_test.domain.command import Command
from worker_under_test.domain.errors import DeliveryError, DomainError, Kind, LocalFailureError
from worker_under_test.domain.event import AttemptEvent, EventKind

if TYPE_CHECKING:
    from worker_under_test.domain.json_value import JsonObject, JsonValue
    from worker_under_test.domain.progress import Checkpoint, Progress
    from worker_under_test.ports.step_store import StepResult

CHAIN: list[JsonValue] = [{"id": "a"}, {"id": "b"}, {"id": "c"}]
FAN: list[JsonValue] = [
    {"id": "a"},
    {"id": "b", "depends_on": ["a"]},
    {"id": "c", "depends_on": ["a"]},
    {"id": "d"},
]


class Steps:
    """A `StepStore` that writes down its calls, and fails on order."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.calls: list[str] = []
        self.results: dict[str, int] = {}
        self.load_failures: list[Exception] = []
        self.save_failures: list[tuple[bool, Exception]] = []
        """Failures of the next saves, each with whether the save lands all the same."""

    async def load(self, run_id: str) -> Snapshot:
        """Load, or fail."""
        self.calls.append("load")
        if self.load_failures:
            raise self.load_failures.pop(0)
        return await self.store.load(run_id)

    async def save_step(self, snapshot: Snapshot, result: StepResult | None) -> None:
        """Save, or fail."""
        self.calls.append(f"save {snapshot.seq}")
        await asyncio.sleep(0)
        landed, failure = self.save_failures.pop(0) if self.save_failures else (True, None)
        if landed:
            await self.store.save_if_newer(snapshot)
            if result is not None:
                self.results[result.step_id] = snapshot.seq
        if failure is not None:
            raise failure

    async def put(self, seq: int, done: str, status: str = "running") -> None:
        """Store a snapshot as an earlier life, or another process, left it."""
        await self.store.save_if_newer(Snapshot("c1", seq, status, tuple(done)))

    async def stored(self) -> tuple[int, str, str]:
        """Return number, completions and state."""
        snapshot = await self.store.load("c1")
        return snapshot.seq, "".join(sorted(snapshot.done)), snapshot.status


class Outside:
    """`Effects` that remembers, and fails on order."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.tokens: set[str] = set()
        self.failures: list[Exception] = []

    async def apply(self, kind: str, key: str, token: str) -> None:
        """Remember, or fail."""
        await asyncio.sleep(0)
        self.tokens.add(token)
        if self.failures:
            raise self.failures.pop(0)
        self.keys.append(key)


class Reports:
    """A `ProgressReporter` that remembers."""

    attempt_id = "attempt-1"
    checkpoint: Checkpoint | None = None
    cancelled = False

    def __init__(self) -> None:
        self.made: list[tuple[Progress, JsonObject]] = []

    async def __call__(self, progress: Progress, evidence: JsonObject | None = None) -> None:
        """Remember a report."""
        self.made.append((progress, evidence or {}))


class Bench:
    """One worker after another around one store and one outside."""

    def __init__(self) -> None:
        self.steps = Steps()
        self.outside = Outside()
        self.reports = Reports()

    async def live(self, steps: list[JsonValue]) -> AttemptEvent:
        """Execute the command in a new process life."""
        self.reports = Reports()
        capability = Workflow(self.steps, self.outside)
        event = await capability.execute(command(steps), self.reports)
        assert event is not None
        return event


def command(steps: JsonValue) -> Command:
    """Return the command."""
    return Command("c1", "workflow", 1, {"steps": steps})


def refused(kind: Kind) -> DeliveryError:
    """Return a refusal of the outside."""
    error = DeliveryError("POST /effects")
    error.__cause__ = DomainError(kind, "refused")
    return error


def anomalies(body: JsonObject) -> list[tuple[str, str]]:
    """Return the anomalies that a body tells of."""
    listed = cast("list[dict[str, str]]", body["anomalies"])
    return [(each["kind"], each["step"]) for each in listed]


@pytest.mark.requirement("ORC-01", "ORC-05", "ORC-07", "ORC-08", "ORC-09", "SNP-02", "SNP-14")
def test_a_first_run_does_every_step_once_and_closes() -> None:
    """There is a snapshot per step, and then one for the end."""

    async def run() -> None:
        bench = Bench()
        event = await bench.live(CHAIN)
        assert event.kind is EventKind.SUCCEEDED
        assert bench.outside.keys == ["c1/a", "c1/b", "c1/c"]
        assert bench.outside.tokens == {"attempt-1"}
        assert bench.steps.results == {"a": 1, "b": 2, "c": 3}
        assert await bench.steps.stored() == (4, "abc", "completed")
        snapshot = await bench.steps.load("c1")
        assert snapshot.fields == {"graph": event.body["graph"]}

    asyncio.run(run())


@pytest.mark.requirement("ORC-04", "COM-20")
def test_a_start_seeds_loads_plans_and_then_runs() -> None:
    """Nothing is saved before the gate is seeded and the snapshot is loaded."""

    async def run() -> None:
        bench = Bench()
        await bench.steps.put(7, "a")
        await bench.live(CHAIN)
        assert bench.steps.calls[:3] == ["load", "load", "save 8"]
        assert bench.outside.keys == ["c1/b", "c1/c"]

    asyncio.run(run())


@pytest.mark.requirement("ORC-02", "ORC-08", "ANO-13")
def test_the_report_after_a_restart_equals_the_plan() -> None:
    """Before any step it says how far the run is, what is left, and every anomaly."""

    async def run() -> None:
        bench = Bench()
        await bench.steps.put(3, "axc")
        event = await bench.live(CHAIN)
        ((progress, evidence),) = bench.reports.made
        assert (progress.completed, progress.total) == (1, 3)
        assert (evidence["skip"], evidence["run"]) == (["a"], ["b", "c"])
        assert evidence["graph_changed"] is True
        wanted = [("done_not_in_graph", "x"), ("done_out_of_order", "c")]
        assert anomalies(evidence) == anomalies(event.body) == wanted

    asyncio.run(run())


@pytest.mark.requirement("ORC-06", "ORC-12", "STP-08")
def test_no_step_starts_before_its_predecessors_are_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Steps that need not wait for each other run side by side."""
    seen: list[tuple[str, str]] = []

    def hook(label: str, context: dict[str, object]) -> None:
        if label in ("step.run.before", "step.record.after"):
            seen.append((label.split(".")[1], str(context["step"])))

    monkeypatch.setattr(harness.points, "_hook", hook)
    asyncio.run(Bench().live(FAN))
    began = {step: seen.index(("run", step)) for step in "abcd"}
    over = {step: seen.index(("record", step)) for step in "abcd"}
    assert over["a"] < min(began["b"], began["c"])
    assert max(began["b"], began["c"]) < min(over["b"], over["c"])
    assert began["d"] > max(over["b"], over["c"])


@pytest.mark.requirement("ORC-11", "AMB-16")
def test_the_next_snapshot_starts_from_what_is_trusted() -> None:
    """Untrusted completions go, ids of another graph stay."""

    async def run() -> None:
        bench = Bench()
        await bench.steps.put(3, "acx")
        saved: list[tuple[str, ...]] = []
        save = bench.steps.save_step

        async def spy(snapshot: Snapshot, result: StepResult | None) -> None:
            saved.append(tuple(snapshot.done))
            await save(snapshot, result)

        bench.steps.save_step = spy  # type: ignore[method-assign]
        await bench.live(CHAIN)
        assert saved[0] == ("a", "x", "b")
        assert bench.outside.keys == ["c1/b", "c1/c"]

    asyncio.run(run())


@pytest.mark.requirement("STP-21")
@pytest.mark.parametrize(
    "steps",
    [
        [{"id": "a"}, {"id": "b", "depends_on": ["ghost"]}],
        [{"id": "a", "depends_on": ["b"]}, {"id": "b", "depends_on": ["a"]}],
        [{"id": "a", "depends_on": ["b"]}, {"id": "b"}],
        [{"id": "a"}, {"id": "b", "isolated": True, "depends_on": ["a"]}],
        [{"id": ""}],
        [{"id": "a"}, {"id": "a"}],
    ],
)
def test_a_graph_with_a_defect_is_refused_before_any_step(steps: list[JsonValue]) -> None:
    """It fails with a clear reason, without an effect or a snapshot."""

    async def run() -> None:
        bench = Bench()
        event = await bench.live(steps)
        assert event.kind is EventKind.FAILED
        assert str(event.body["reason"]).startswith("graph refused: ")
        assert bench.outside.keys == bench.steps.calls == []

    asyncio.run(run())


@pytest.mark.requirement("ATT-08", "PLN-30")
@pytest.mark.parametrize(
    "steps",
    [
        None,
        [],
        ["a"],
        [{"id": 1}],
        [{"id": "a", "isolated": 1}],
        [{"id": "a", "depends_on": "b"}],
        [{"id": "a", "depends_on": [1]}],
        [{"id": "a", "recovery": "once"}],
        [{"id": str(n)} for n in range(501)],
    ],
)
def test_a_payload_that_cannot_be_read_is_invalid(steps: JsonValue) -> None:
    """The payload is invalid; a recovery rule that is not kept is refused as well."""
    with pytest.raises(DomainError) as refusal:
        asyncio.run(Workflow(Steps(), Outside()).execute(command(steps), Reports()))
    assert refusal.value.kind is Kind.INVALID


@pytest.mark.requirement("PLN-29", "PLN-17", "INV-13")
def test_a_blocked_run_is_left_alone() -> None:
    """There is no step and no commit, only the report."""

    async def run() -> None:
        bench = Bench()
        await bench.steps.put(5, "ab", "completed")
        for _ in range(3):
            event = await bench.live(CHAIN)
            assert event.kind is EventKind.UNKNOWN
            assert ("complete_with_pending", "") in anomalies(event.body)
        assert bench.outside.keys == []
        assert await bench.steps.stored() == (5, "ab", "completed")

    asyncio.run(run())


@pytest.mark.requirement("ORC-07")
def test_a_crash_between_the_last_step_and_the_end_only_closes() -> None:
    """Nothing runs, the run is closed; once closed nothing is written any more."""

    async def run() -> None:
        bench = Bench()
        await bench.steps.put(3, "abc")
        assert (await bench.live(CHAIN)).kind is EventKind.SUCCEEDED
        assert await bench.steps.stored() == (4, "abc", "completed")
        assert (await bench.live(CHAIN)).kind is EventKind.SUCCEEDED
        assert await bench.steps.stored() == (4, "abc", "completed")
        assert bench.outside.keys == []

    asyncio.run(run())


@pytest.mark.requirement("PLN-30", "SNP-15")
def test_a_step_that_may_have_happened_is_asked_for_under_the_same_key() -> None:
    """The effect was made and the commit lost; the key is the one from before."""

    async def run() -> None:
        bench = Bench()
        bench.steps.save_failures = [(False, OSError("gone"))] * 9
        with pytest.raises(LocalFailureError):
            await bench.live(CHAIN)
        bench.steps.save_failures.clear()
        await bench.live(CHAIN)
        assert bench.outside.keys == ["c1/a", "c1/a", "c1/b", "c1/c"]

    asyncio.run(run())


@pytest.mark.requirement("COM-11", "GAT-10", "GAT-11")
def test_a_busy_store_is_tried_again_with_the_same_number() -> None:
    """After two failures the run goes through without a hole."""

    async def run() -> None:
        bench = Bench()
        bench.steps.save_failures = [(False, OSError("busy"))] * 2
        assert (await bench.live(CHAIN)).kind is EventKind.SUCCEEDED
        assert [call for call in bench.steps.calls if call != "load"] == [
            *["save 1"] * 3,
            "save 2",
            "save 3",
            "save 4",
        ]

    asyncio.run(run())


@pytest.mark.requirement("COM-17", "STO-21")
def test_a_commit_that_landed_and_failed_counts_as_landed() -> None:
    """Nothing runs again and no number is spent."""

    async def run() -> None:
        bench = Bench()
        bench.steps.save_failures = [(True, OSError("reply lost"))]
        assert (await bench.live(CHAIN)).kind is EventKind.SUCCEEDED
        assert bench.outside.keys == ["c1/a", "c1/b", "c1/c"]
        assert await bench.steps.stored() == (4, "abc", "completed")

    asyncio.run(run())


@pytest.mark.requirement("COM-16", "COM-18", "AMB-18", "ORC-10")
def test_a_newer_snapshot_of_another_process_is_merged() -> None:
    """Its completions and ours are committed under a higher number."""

    async def run() -> None:
        bench = Bench()
        save = bench.steps.save_step

        async def overtaken(snapshot: Snapshot, result: StepResult | None) -> None:
            if snapshot.seq == 2:
                await bench.steps.put(6, "axy")
            await save(snapshot, result)

        bench.steps.save_step = overtaken  # type: ignore[method-assign]
        assert (await bench.live(CHAIN)).kind is EventKind.SUCCEEDED
        assert await bench.steps.stored() == (9, "abcxy", "completed")

    asyncio.run(run())


@pytest.mark.requirement("INV-13", "COM-16")
def test_a_run_that_another_process_has_ended_is_not_touched() -> None:
    """The rest does not run, and the end that is stored stays."""

    async def run() -> None:
        bench = Bench()
        save = bench.steps.save_step

        async def overtaken(snapshot: Snapshot, result: StepResult | None) -> None:
            if snapshot.seq == 2:
                await bench.steps.put(6, "abc", "completed")
            await save(snapshot, result)

        bench.steps.save_step = overtaken  # type: ignore[method-assign]
        assert (await bench.live(CHAIN)).kind is EventKind.UNKNOWN
        assert await bench.steps.stored() == (6, "abc", "completed")
        assert bench.outside.keys == ["c1/a", "c1/b"]

    asyncio.run(run())


@pytest.mark.requirement("ERR-05", "ORC-03", "COM-22")
def test_a_failed_load_is_no_first_run() -> None:
    """No step runs, the store's failure comes out, nothing is written."""

    async def run() -> None:
        bench = Bench()
        await bench.steps.put(3, "ab")
        bench.steps.load_failures = [OSError("I/O error")]
        with pytest.raises(LocalFailureError) as failure:
            await bench.live(CHAIN)
        assert isinstance(failure.value.__cause__, OSError)
        bench.steps.load_failures = [DamagedRecordError("torn")]
        event = await bench.live(CHAIN)
        assert event.kind is EventKind.UNKNOWN
        assert bench.outside.keys == []
        assert await bench.steps.stored() == (3, "ab", "running")

    asyncio.run(run())


@pytest.mark.requirement("ATT-08", "INV-13")
def test_a_refused_step_ends_the_run_as_failed() -> None:
    """No further step runs, and a later incarnation only reports the failure."""

    async def run() -> None:
        bench = Bench()
        await bench.steps.put(1, "a")
        bench.outside.failures = [refused(Kind.CONFLICT)]
        first = await bench.live(CHAIN)
        assert first.kind is EventKind.FAILED
        assert await bench.steps.stored() == (2, "a", "failed")
        again = await bench.live(CHAIN)
        assert (again.kind, again.body["reason"]) == (first.kind, first.body["reason"])
        assert bench.outside.keys == []
        assert await bench.steps.stored() == (2, "a", "failed")

    asyncio.run(run())


@pytest.mark.requirement("PLN-30", "UNK-05")
def test_an_effect_whose_outcome_is_not_known_leaves_the_run_open() -> None:
    """It is asked three times under one key, then UNKNOWN, and the run is not ended."""

    async def run() -> None:
        bench = Bench()
        bench.outside.failures = [DeliveryError("lost")] * 2
        assert (await bench.live(CHAIN)).kind is EventKind.SUCCEEDED
        other = Bench()
        other.outside.failures = [DeliveryError("lost")] * 3
        assert (await other.live(CHAIN)).kind is EventKind.UNKNOWN
        assert other.steps.results == {}

    asyncio.run(run())
