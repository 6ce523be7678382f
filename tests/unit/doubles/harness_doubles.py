"""Values of the harness, made by hand: hits, lives, results, scenarios and evidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.model.image import Image
from harness.model.oracle import EndedIncarnation, Evidence, Finding, broken_if
from harness.model.result import ExperimentResult, Fired, IncarnationTrace, Verdict, Violation
from harness.model.schedule import CONTROL, Schedule
from harness.model.trace import Death, Hit
from harness.model.workload import Command, Workload
from harness.oracles.mailbox.worker_state import WorkerState
from harness.scenario import HOLDS, Pin, Scenario
from harness.world.coordinator.facts import Ack, CoordinatorFacts, Delivery, Event, Outcome, Receipt
from harness.world.coordinator.marker_file import write_facts
from harness.world.coordinator.rows import rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from harness.model.site import Site

KILLED = Death(9, -1)
CLEAN = Death(0, 0)


def hit(label: str, nth: int = 1, *, nth_in_context: int = 1, **context: str) -> Hit:
    """Return the n-th hit of a label, which is also a hit of each context."""
    return Hit(label, context, {"": nth, **dict.fromkeys(context, nth_in_context)}, stop=False)


def hits(*labels: str) -> tuple[Hit, ...]:
    """Return hits without context, counted as an incarnation would count them."""
    return tuple(hit(label, labels[: n + 1].count(label)) for n, label in enumerate(labels))


def result(
    schedule: Schedule = CONTROL,
    incarnations: Sequence[Sequence[Hit]] = (),
    *,
    verdict: Verdict = Verdict.HELD,
    images: Sequence[str] = (),
    fired: int | None = None,
    violations: tuple[Violation, ...] = (),
    scenario: str = "tried",
    seed: int = 0,
    note: str = "",
) -> ExperimentResult:
    """Return a result; unless `fired` says how many did, every strike of the schedule fired."""
    strikes = [
        Fired(strike.moment, number)
        for number, life in enumerate(schedule.incarnations, start=1)
        for strike in life
    ]
    return ExperimentResult(
        scenario=scenario,
        schedule=schedule,
        seed=seed,
        verdict=verdict,
        violations=violations,
        fired=tuple(strikes if fired is None else strikes[:fired]),
        note=note,
        incarnations=tuple(
            IncarnationTrace(
                n, tuple(reached), "killed by SIGKILL", images[n - 1] if images else ""
            )
            for n, reached in enumerate(incarnations, start=1)
        ),
    )


def broken(schedule: Schedule = CONTROL, *oracles: str) -> ExperimentResult:
    """Return a result that these oracles broke."""
    found = tuple(Violation(name, f"{name} found it") for name in oracles)
    return result(schedule, verdict=Verdict.BROKEN, violations=found)


@dataclass(frozen=True)
class NamedOracle:
    """An oracle that answers what it was given."""

    name: str
    facts: tuple[str, ...] = ()
    promise: str = "what was promised"

    def check(self, evidence: Evidence) -> Finding:
        """Answer."""
        return broken_if(self.facts)


def idle_worker(_site: Site) -> None:
    """Do nothing."""


def idle_workload(_seed: int) -> Workload:
    """Ask for nothing but a fresh command."""
    return Workload((), fresh=Command("fresh"))


def scenario(
    name: str = "tried",
    *,
    pin: Pin = HOLDS,
    oracles: Sequence[str] = ("first",),
    strike: tuple[str, ...] = (),
    must_reach_all: bool = True,
) -> Scenario:
    """Return a scenario with oracles of these names."""
    return Scenario(
        name=name,
        worker=idle_worker,
        workload=idle_workload,
        oracles=tuple(NamedOracle(oracle) for oracle in oracles),
        pin=pin,
        strike=strike,
        must_reach_all=must_reach_all,
    )


def facts(
    *,
    delivered: Iterable[str] = (),
    acked: Iterable[str] = (),
    events: Iterable[tuple[str, str, str, str]] = (),
    receipts: Iterable[tuple[Outcome, tuple[str, str, str, str]]] = (),
) -> CoordinatorFacts:
    """Return the facts of a coordinator.

    Args:
        delivered: Ids of commands.
        acked: Ids of commands.
        events: Accepted events: event id, command id, attempt id, kind.
        receipts: Receipts of other outcomes.
    """
    every: list[tuple[Outcome, tuple[str, str, str, str]]] = [("accepted", e) for e in events]
    seen = tuple(
        Receipt(Event(n, event_id, "session-1", command_id, attempt_id, kind, {}), outcome)
        for n, (outcome, (event_id, command_id, attempt_id, kind)) in enumerate(
            [*every, *receipts], start=1000
        )
    )
    return CoordinatorFacts(
        deliveries=tuple(Delivery(n, n, c, "session-1") for n, c in enumerate(delivered, start=1)),
        acks=tuple(Ack(n, c, "session-1", repeated=False) for n, c in enumerate(acked, start=100)),
        events=tuple(receipt.event for receipt in seen if receipt.outcome == "accepted"),
        receipts=seen,
    )


def put_facts(world_dir: Path, seen: CoordinatorFacts) -> None:
    """Write a coordinator's database."""
    write_facts(world_dir, dict(rows(kind) for kind in seen.kinds() if kind))


def new_image(path: Path) -> Image:
    """Make an empty image."""
    image = Image(path)
    image.worker_dir.mkdir(parents=True)
    image.world_dir.mkdir()
    return image


@dataclass
class Scene:
    """An experiment with one strike, built image by image.

    Attributes:
        path: Directory to build in.
        books: What the reader returns for each worker's directory.
        commands: Ids of the commands of the workload; ``fresh`` is the fresh one.
        survivors: Processes that are left.
    """

    path: Path
    books: dict[Path, WorkerState] = field(default_factory=dict)
    commands: tuple[str, ...] = ("c1",)
    survivors: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.start = new_image(self.path / "start")
        self.crash = new_image(self.path / "crash")
        self.settled = new_image(self.path / "settled")
        self.after_restart = new_image(self.path / "unchanged")
        self.final = new_image(self.path / "final")

    @property
    def every(self) -> tuple[Image, ...]:
        """Every image that an oracle is shown, in order."""
        return (self.crash, self.settled, self.after_restart, self.final)

    def read_books(self, worker_dir: Path) -> WorkerState:
        """Read the books that were put for a directory."""
        return self.books.get(worker_dir, WorkerState())

    def put_books(self, books: WorkerState, *images: Image) -> None:
        """Put books into images, or into all."""
        for image in images or self.every:
            self.books[image.worker_dir] = books

    def put_facts(self, seen: CoordinatorFacts, *images: Image) -> None:
        """Write a coordinator's facts into images, or into all."""
        for image in images or self.every:
            put_facts(image.world_dir, seen)

    def evidence(self) -> Evidence:
        """Return the evidence: one struck incarnation, the recovery, and the start after it."""
        return Evidence(
            workload=Workload(tuple(map(Command, self.commands)), fresh=Command("fresh")),
            struck=(EndedIncarnation(1, (), KILLED, self.start, self.crash),),
            recovered=EndedIncarnation(2, (), KILLED, self.crash, self.settled),
            restarted=EndedIncarnation(3, (), KILLED, self.settled, self.final),
            after_restart=self.after_restart,
            survivors=self.survivors,
        )
