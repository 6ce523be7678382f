"""The journal of a run, line by line: what its lines look like, and how results go in and out.

The first line says what the run was asked. Then come, in the order in which they happened: how
many experiments were asked for at once (`PlannedLine`), and each that finished (`FinishedLine`). A
result is written whole, with every hit, so that what follows from it can be worked out again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NotRequired, TypedDict

from harness.model.result import ExperimentResult, Fired, IncarnationTrace, Verdict, Violation
from harness.model.schedule import Moment, parse
from harness.model.trace import Hit
from harness.record.typed_dicts import as_declared

if TYPE_CHECKING:
    from harness.model.canonical_json import Json

SCHEMA: Final = "crash-harness/journal/1"


class CommandRow(TypedDict):
    """What was said on the command line, or what holds where nothing was said.

    `seeds` is what `--seeds` said, or null, and `before` the exit codes of those that had been run;
    `pins` is the path of the pins file, or null where there was none; `files` are digests of the
    code.
    """

    scenarios: list[str]
    tier: str
    at: str | None
    oracles: list[str]
    seeds: list[int] | None
    before: dict[str, int]
    jobs: int
    pins: str | None
    report: str | None
    root: str | None
    scenarios_from: str
    folder: str
    version: str
    python: str
    hash_seed: str
    files: dict[str, str]


class HeaderLine(TypedDict):
    """The first line: of which run this is the journal.

    `command` is null in the journal of a run that the command did not begin.
    """

    journal: Literal["crash-harness/journal/1"]
    started: str
    tier: str
    seed: int
    scenarios: list[str]
    command: CommandRow | None


class AskedRow(TypedDict):
    """Which experiment it was, and how it was to be run; `kept` says whether what it left is kept.

    Experiments of the plan are kept; those that compare, shrink or confirm are not.
    """

    scenario: str
    schedule: str
    seed: int
    digests: bool
    sharing: int
    fresh: bool
    confirm: bool
    kept: bool


class HitRow(TypedDict):
    """A point that was reached; what is not there is false, or 0."""

    label: str
    context: dict[str, str]
    hits: dict[str, int]
    stop: NotRequired[bool]
    child: NotRequired[bool]
    thread: NotRequired[bool]
    pid: NotRequired[int]


class LifeRow(TypedDict):
    """An incarnation."""

    number: int
    death: str
    image: str
    hits: list[HitRow]


class MomentFiredRow(TypedDict):
    """A strike that is proved."""

    label: str
    ordinal: int
    key: str
    value: str
    incarnation: int


class FoundRow(TypedDict):
    """One fact that breaks a promise."""

    oracle: str
    message: str


class ResultRow(TypedDict):
    """What an experiment came to."""

    verdict: Literal["held", "broken", "not_fired", "wrong_death", "hung", "flaky", "unknown"]
    violations: list[FoundRow]
    fired: list[MomentFiredRow]
    note: str
    incarnations: list[LifeRow]
    survivors: list[str]
    outside: list[str]
    seconds: float


class PlannedLine(TypedDict):
    """How many experiments were asked for at once, and whether they are experiments of the plan."""

    planned: int
    kept: bool


class FinishedLine(TypedDict):
    """An experiment that has finished, and when, in seconds of the run's work."""

    asked: AskedRow
    result: ResultRow
    at_s: float


@dataclass(frozen=True, slots=True)
class Asked:
    """An experiment as it was asked for: what finds its result again.

    Attributes:
        scenario: Name of the scenario.
        schedule: Text of the schedule.
        seed: The seed.
        digests: Whether digests of the crash images were wanted.
        sharing: What it was allowed to share with others, as the number of a set of flags.
        fresh: Whether every incarnation got an interpreter of its own.
        confirm: Whether what does not hold was run again.
        kept: Whether what it left is kept, as that of experiments of the plan is.
    """

    scenario: str
    schedule: str
    seed: int
    digests: bool
    sharing: int
    fresh: bool
    confirm: bool
    kept: bool


@dataclass(frozen=True, slots=True)
class Finished:
    """An experiment that has finished.

    Attributes:
        asked: Which it was.
        result: What it came to.
        at_s: When, in seconds of the run's work.
    """

    asked: Asked
    result: ExperimentResult
    at_s: float


def finished_line(finished: Finished) -> FinishedLine:
    """Return the line of an experiment that has finished."""
    asked, result = finished.asked, finished.result
    return {
        "asked": {
            "scenario": asked.scenario,
            "schedule": asked.schedule,
            "seed": asked.seed,
            "digests": asked.digests,
            "sharing": asked.sharing,
            "fresh": asked.fresh,
            "confirm": asked.confirm,
            "kept": asked.kept,
        },
        "result": {
            "verdict": result.verdict.value,
            "violations": [{"oracle": v.oracle, "message": v.message} for v in result.violations],
            "fired": [_fired_row(fired) for fired in result.fired],
            "note": result.note,
            "incarnations": [_life_row(life) for life in result.incarnations],
            "survivors": list(result.survivors),
            "outside": list(result.outside),
            "seconds": result.seconds,
        },
        "at_s": finished.at_s,
    }


def read_finished(line: Json, where: str) -> Finished:
    """Read the line of an experiment that has finished.

    Args:
        line: The line, as JSON was read from it.
        where: The file and the line, for the message.

    Raises:
        UsageError: It is not such a line.
    """
    row = as_declared(line, FinishedLine, where)
    asked, found = Asked(**row["asked"]), row["result"]
    result = ExperimentResult(
        scenario=asked.scenario,
        schedule=parse(asked.schedule),
        seed=asked.seed,
        verdict=Verdict(found["verdict"]),
        violations=tuple(Violation(v["oracle"], v["message"]) for v in found["violations"]),
        fired=tuple(
            Fired(Moment(f["label"], f["ordinal"], f["key"], f["value"]), f["incarnation"])
            for f in found["fired"]
        ),
        note=found["note"],
        incarnations=tuple(_life(life) for life in found["incarnations"]),
        survivors=tuple(found["survivors"]),
        outside=tuple(found["outside"]),
        seconds=found["seconds"],
    )
    return Finished(asked, result, row["at_s"])


def _fired_row(fired: Fired) -> MomentFiredRow:
    moment = fired.moment
    return {
        "label": moment.label,
        "ordinal": moment.ordinal,
        "key": moment.key,
        "value": moment.value,
        "incarnation": fired.incarnation,
    }


def _life_row(life: IncarnationTrace) -> LifeRow:
    return {
        "number": life.number,
        "death": life.death,
        "image": life.image,
        "hits": [_hit_row(hit) for hit in life.hits],
    }


def _hit_row(hit: Hit) -> HitRow:
    row: HitRow = {"label": hit.label, "context": hit.context, "hits": hit.hits}
    if hit.stop:
        row["stop"] = True
    if hit.child:
        row["child"] = True
    if hit.thread:
        row["thread"] = True
    if hit.pid:
        row["pid"] = hit.pid
    return row


def _life(row: LifeRow) -> IncarnationTrace:
    hits = tuple(
        Hit(
            hit["label"],
            hit["context"],
            hit["hits"],
            stop=hit.get("stop", False),
            child=hit.get("child", False),
            thread=hit.get("thread", False),
            pid=hit.get("pid", 0),
        )
        for hit in row["hits"]
    )
    return IncarnationTrace(row["number"], hits, row["death"], row["image"])
