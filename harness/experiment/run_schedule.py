"""Conduct an experiment: run a schedule on a rig to its end, and judge what it left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.experiment.second_restart import RestartError
from harness.images.digest import image_digest
from harness.model.errors import DeadlineError, HarnessError
from harness.model.oracle import OracleStatus
from harness.model.result import ExperimentResult, Fired, IncarnationTrace, Verdict, Violation
from harness.model.schedule import Schedule
from harness.processes.incarnation import ForeignStopError

if TYPE_CHECKING:
    from harness.experiment.rig import Halt, Rig
    from harness.experiment.second_restart import Gathering
    from harness.experiment.state_cache import PrefixKey
    from harness.model.oracle import EndedIncarnation, Evidence, Oracle
    from harness.model.schedule import Strike


class EndedError(HarnessError):
    """The experiment is over before its oracles could judge.

    Args:
        verdict: What it came to.
        note: Why, for the reader.
    """

    def __init__(self, verdict: Verdict, note: str) -> None:
        super().__init__(note)
        self.verdict = verdict
        self.note = note

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.verdict, self.note)


def run_experiment(
    rig: Rig,
    schedule: Schedule,
    gathering: Gathering,
    *,
    digests: bool = False,
    recover: bool = False,
) -> ExperimentResult:
    """Run a schedule and judge the outcome.

    Args:
        rig: A new rig; it is not closed. It may go on from a beginning that is the schedule's.
        schedule: The strikes; empty for the control leg.
        gathering: Gathers the evidence on the rig. A verdict that is not `HELD` counts only if
            it has used nothing that was known.
        digests: Whether to work out the digests of the crash images.
        recover: Whether to run the recovery even if that from an equal crash image is known.

    Returns:
        The result. `HELD` only if every strike is proved and every oracle holds.
    """
    begun = len(rig.incarnations)
    fired = [
        Fired(strike.moment, number)
        for number, strikes in enumerate(schedule.incarnations[:begun], 1)
        for strike in strikes
    ]
    unrun: tuple[EndedIncarnation, ...] = ()
    violations: tuple[Violation, ...] = ()
    survivors: tuple[str, ...] = ()
    try:
        for strikes in schedule.incarnations[begun:]:
            if len(rig.incarnations) > begun:
                start = Schedule(schedule.incarnations[: len(rig.incarnations)])
                gathering.keep_beginning(start_of(rig.scenario.name, rig.seed, start))
            number = rig.start()
            for strike in strikes:
                _strike(rig, number, strike)
                fired.append(Fired(strike.moment, number))
        evidence = None if recover else gathering.known_outcome()
        if evidence is None:
            settle(rig)
            evidence = gathering.evidence()
        else:
            unrun = evidence.recovered, evidence.restarted
        survivors = evidence.survivors
        verdict, violations, note = judge(rig.scenario.oracles, evidence)
    except EndedError as end:
        verdict, note = end.verdict, end.note
    except DeadlineError as error:
        verdict, note = Verdict.HUNG, str(error)
    except (ForeignStopError, RestartError) as error:
        verdict, note = Verdict.WRONG_DEATH, str(error)
    rig.save()
    if verdict is Verdict.HELD:
        gathering.remember()
    struck = {strike.incarnation for strike in fired}
    return ExperimentResult(
        scenario=rig.scenario.name,
        schedule=schedule,
        seed=rig.seed,
        verdict=verdict,
        violations=violations,
        fired=tuple(fired),
        note=note,
        incarnations=tuple(
            IncarnationTrace(
                life.number,
                life.hits,
                str(life.death),
                image_digest(life.after) if digests and life.number in struck else "",
            )
            for life in (*rig.incarnations, *unrun)
        ),
        survivors=survivors,
    )


def start_of(scenario: str, seed: int, schedule: Schedule) -> PrefixKey:
    """Return what finds the beginning of an experiment again."""
    return scenario, seed, str(schedule)


def settle(rig: Rig) -> None:
    """Let every living incarnation become quiet, without faults, and end it.

    If none is alive, one is started: the recovery.

    Raises:
        DeadlineError: One did not become quiet in time.
        EndedError: One died instead.
    """
    for number in rig.alive or (rig.start(),):
        halt = rig.run_until_quiet(number)
        if not halt.quiet:
            raise _wrong_death(rig, number, halt, "recovering")
        if halt.hit is not None:
            rig.kill(number)


def judge(
    oracles: tuple[Oracle, ...], evidence: Evidence
) -> tuple[Verdict, tuple[Violation, ...], str]:
    """Ask every oracle.

    Returns:
        The verdict, the violations, and for `UNKNOWN` a note. Broken is stronger than unknown,
        unknown stronger than held; an oracle that fails is unknown.
    """
    violations: list[Violation] = []
    doubts: list[str] = []
    for oracle in oracles:
        try:
            finding = oracle.check(evidence)
        except Exception as error:  # noqa: BLE001 - a fault of the oracle is no verdict on the worker
            doubts.append(f"oracle {oracle.name} failed: {type(error).__name__}: {error}")
            continue
        if finding.answer is OracleStatus.BROKEN:
            violations.extend(Violation(oracle.name, fact) for fact in finding.evidence)
        elif finding.answer is OracleStatus.UNKNOWN:
            doubts.extend(f"oracle {oracle.name} cannot tell: {f}" for f in finding.evidence)
    if violations:
        return Verdict.BROKEN, tuple(violations), "\n".join(doubts)
    if doubts:
        return Verdict.UNKNOWN, (), "\n".join(doubts)
    return Verdict.HELD, (), ""


def _strike(rig: Rig, number: int, strike: Strike) -> None:
    if number not in rig.alive:
        raise EndedError(Verdict.NOT_FIRED, f"{strike.moment}: the incarnation was dead already")
    halt = rig.run_until(number, strike.moment)
    if halt.hit is None or not halt.hit.is_at(strike.moment):
        if halt.quiet:
            raise EndedError(Verdict.NOT_FIRED, f"{strike.moment} was not reached before quiet")
        raise _wrong_death(rig, number, halt, f"on the way to {strike.moment}")
    death = rig.kill(number)
    if not death.killed:
        raise EndedError(Verdict.WRONG_DEATH, f"struck at {strike.moment}, it {death}")


def _wrong_death(rig: Rig, number: int, halt: Halt, when: str) -> EndedError:
    return EndedError(
        Verdict.WRONG_DEATH,
        f"{when}, incarnation {number} {halt.death}\n{rig.output(number)}".rstrip(),
    )
