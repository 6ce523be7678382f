"""One experiment, from the first incarnation to the verdict: `run_experiment` is the protocol.

What a step *does* is a method of `Steps`. `RealSteps` does it on a rig; the wrapper
`harness.experiment.sharing.SharedSteps` gives what an equal state has already led to, where that is
known. Neither can change what the protocol requires.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from harness.experiment.ends import Recovery, RestartResult
from harness.experiment.judging import judge
from harness.images.digest import image_digest
from harness.images.run_folder import restart_image_name
from harness.images.tree import UnimageableError
from harness.model.errors import DeadlineError, HarnessError
from harness.model.oracle import Evidence
from harness.model.quiet import describe_end
from harness.model.result import ExperimentResult, Fired, IncarnationTrace, Verdict
from harness.processes.incarnation import ForeignStopError
from harness.processes.trace_reader import DamagedTraceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.experiment.rig import Halt
    from harness.model.image import Image
    from harness.model.oracle import EndedIncarnation
    from harness.model.result import Violation
    from harness.model.schedule import Moment, Schedule, Strike
    from harness.model.trace import Death
    from harness.model.workload import Command, Workload
    from harness.scenario import Scenario


_LONGER = " (deadline_s of the scenario allows more)"


class RestartError(HarnessError):
    """A worker that had become quiet did not become quiet again after a restart.

    Args:
        note: How it ended instead.
        verdict: What that comes to where nothing was struck.
        after_restart: What was durable when it was quiet, if it was before the fresh command.
    """

    def __init__(
        self,
        note: str,
        verdict: Verdict = Verdict.WRONG_DEATH,
        after_restart: Image | None = None,
    ) -> None:
        super().__init__(note)
        self.note = note
        self.verdict = verdict
        self.after_restart = after_restart

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.note, self.verdict, self.after_restart)


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


class NotQuietError(EndedError):
    """An incarnation died or hung that was to reach a moment, or to become quiet."""


class Verbs(Protocol):
    """What the protocol needs of a rig (`harness.experiment.rig.Rig`)."""

    @property
    def scenario(self) -> Scenario:
        """What is tried."""

    @property
    def seed(self) -> int:
        """Source of everything random."""

    @property
    def workload(self) -> Workload:
        """What is asked of the worker."""

    @property
    def incarnations(self) -> tuple[EndedIncarnation, ...]:
        """Every incarnation that has ended, in the order of their ends."""

    @property
    def alive(self) -> tuple[int, ...]:
        """Numbers of the incarnations that have not ended."""

    @property
    def last_image(self) -> Image:
        """The image of the last end of an incarnation; `save` makes it."""

    def start(self) -> int:
        """Start an incarnation; it stands still."""

    def run_until(self, number: int, moment: Moment) -> Halt:
        """Let an incarnation run until a moment, until it is quiet, or until it dies."""

    def run_until_quiet(self, number: int) -> Halt:
        """Let an incarnation run until nothing is left to do, or until it dies."""

    def kill(self, number: int) -> Death:
        """Kill an incarnation, and prove its death."""

    def offer(self, command: Command) -> None:
        """Offer one more command."""

    def image(self, name: str) -> Image:
        """Take an image of what is durable now."""

    def save(self) -> None:
        """Make the image of the last incarnation's end, before anything changes."""

    def survivors(self) -> tuple[str, ...]:
        """Return the processes that are left though every incarnation should be dead."""

    def output(self, number: int) -> str:
        """Return the end of what an incarnation wrote."""


class Steps(Protocol):
    """The steps of an experiment that follow from the durable state alone."""

    def begin(self, prefix: Schedule) -> None:
        """Be told that an incarnation is about to start after these strikes."""

    def recover(self) -> Recovery:
        """Let the worker become quiet without a fault."""

    def restart(self) -> RestartResult:
        """Start the quiet worker again, offer the fresh command, and end it."""

    def held(self) -> None:
        """Be told that the experiment held; its evidence is not used any more."""


def run_experiment(
    rig: Verbs, schedule: Schedule, steps: Steps, *, digests: bool = False
) -> ExperimentResult:
    """Run a schedule and judge what it left.

    1. **Start** an incarnation; it stands still until it is told where to stop.
    2. **Strike**: let it run until the next moment of its part of the schedule, and kill it there.
       The trace must say that it stopped at that moment, and the wait status that SIGKILL ended
       it; otherwise the fault did not happen, and the experiment ends without a judgement.
    3. Take the **crash image**. Repeat from 1 for every incarnation that the schedule strikes.
    4. **Recover**: start an incarnation without a fault and let it become quiet. In the control
       leg this is the first one.
    5. **Restart**: end it, start the worker once more, let it become quiet; what is durable then
       must be as it was.
    6. **Fresh command**: offer one more command, and let the worker become quiet.
    7. **Look for survivors** when every incarnation should be dead.
    8. **Judge**: ask every oracle of the scenario. Broken is stronger than unknown, unknown
       stronger than held. When a strike is proved and an incarnation after it dies or hangs, the
       worker did not start again, which is a promise of its own (`harness.model.starts_again`).

    Args:
        rig: A new rig, or one that goes on from a prefix of the schedule; it is not closed.
        schedule: The strikes; empty for the control leg.
        steps: How steps 4 to 6 are done.
        digests: Whether to work out the digests of the crash images.

    Returns:
        The result. `HELD` only if every strike is proved and every oracle holds.
    """
    begun = len(rig.incarnations)
    fired = [
        Fired(strike.moment, number)
        for number, strikes in enumerate(schedule.incarnations[:begun], 1)
        for strike in strikes
    ]
    ran: tuple[EndedIncarnation, ...] | None = None
    stuck = False
    after_restart: Image | None = None
    violations: tuple[Violation, ...] = ()
    survivors: tuple[str, ...] = ()
    try:
        _strike_all(rig, schedule, steps, fired)
        struck = rig.incarnations
        recovery = steps.recover()
        restart = steps.restart()
        ran = (*struck, recovery.incarnation, *restart.incarnations)
        survivors = tuple(dict.fromkeys((*recovery.survivors, *restart.survivors)))
        evidence = Evidence(
            workload=rig.workload,
            struck=struck,
            recovered=recovery.incarnation,
            restarted=restart.incarnations[-1],
            after_restart=restart.after_restart,
            survivors=survivors,
        )
        verdict, violations, note = judge(rig.scenario.judges, evidence)
    except EndedError as end:
        verdict, note, stuck = end.verdict, end.note, isinstance(end, NotQuietError)
    except RestartError as error:
        verdict, note, stuck = error.verdict, error.note, True
        after_restart = error.after_restart
    except DeadlineError as error:
        verdict, note = Verdict.HUNG, str(error)
    except ForeignStopError as error:
        verdict, note = Verdict.WRONG_DEATH, str(error)
    except (DamagedTraceError, UnimageableError) as error:
        verdict, note = Verdict.UNKNOWN, _no_evidence(error)
    if stuck and fired:
        try:
            evidence = _evidence_of_stuck(rig, fired, note, after_restart)
            verdict, violations, _ = judge(rig.scenario.judges, evidence)
        except (DamagedTraceError, DeadlineError, UnimageableError) as error:
            verdict, note = Verdict.UNKNOWN, f"{note}\n{_no_evidence(error)}"
    note = _saved(rig, note)
    all_ran = rig.incarnations if ran is None else ran
    struck_numbers = {strike.incarnation for strike in fired}
    traces = tuple(
        IncarnationTrace(
            ended.number,
            ended.hits,
            str(ended.death),
            image_digest(ended.after) if digests and ended.number in struck_numbers else "",
        )
        for ended in all_ran
    )
    if verdict is Verdict.HELD:
        steps.held()
    return ExperimentResult(
        scenario=rig.scenario.name,
        schedule=schedule,
        seed=rig.seed,
        verdict=verdict,
        violations=violations,
        fired=tuple(fired),
        note="\n".join(filter(None, [note, *_hits_left_out(all_ran)])),
        incarnations=traces,
        survivors=survivors,
    )


def _hits_left_out(incarnations: tuple[EndedIncarnation, ...]) -> Iterator[str]:
    for ended in incarnations:
        if ended.hits_left_out:
            total = len(ended.hits) + ended.hits_left_out
            yield (
                f"incarnation {ended.number} hit points {total:,} times; "
                f"{len(ended.hits):,} of these hits are looked at and kept"
            )


def _evidence_of_stuck(
    rig: Verbs, fired: list[Fired], note: str, after_restart: Image | None
) -> Evidence:
    """Return what there is to judge by of a worker that did not start again after a strike.

    Args:
        rig: The experiment; what is alive is killed.
        fired: The strikes.
        note: How the worker failed, in the first line.
        after_restart: What was durable when the restarted worker was quiet, if it was.
    """
    for number in rig.alive:
        rig.kill(number)
    rig.save()
    numbers = {strike.incarnation for strike in fired}
    struck = tuple(ended for ended in rig.incarnations if ended.number in numbers)
    recovered, *later = rig.incarnations[len(struck) :]
    return Evidence(
        workload=rig.workload,
        struck=struck,
        recovered=recovered,
        restarted=later[-1] if later else recovered,
        after_restart=after_restart or recovered.after,
        survivors=rig.survivors(),
        failed=note.partition("\n")[0],
        fresh_offered=after_restart is not None,
    )


def _saved(rig: Verbs, note: str) -> str:
    """Make the image of the last end, and return the note, which says so if that cannot be."""
    try:
        rig.save()
    except UnimageableError as error:
        if str(error) not in note:
            return f"{note}\nwhat it left cannot be kept: {error}"
    return note


def _no_evidence(error: HarnessError) -> str:
    return f"what the worker left is no evidence: {error}"


class RealSteps:
    """The steps, done on a rig.

    Args:
        rig: The experiment.
    """

    def __init__(self, rig: Verbs) -> None:
        self._rig = rig

    def begin(self, prefix: Schedule) -> None:
        """Do nothing: only what shares states wants to know."""

    def recover(self) -> Recovery:
        """Let the worker become quiet without a fault.

        Raises:
            NotQuietError: It died instead, or hung.
        """
        try:
            settle(self._rig)
        except DeadlineError as error:
            raise NotQuietError(
                Verdict.HUNG, f"recovering, the worker hung: {error}{_LONGER}"
            ) from None
        return Recovery(self._rig.incarnations[-1], self._rig.survivors())

    def restart(self) -> RestartResult:
        """Start the quiet worker again, offer the fresh command, and end it.

        Raises:
            HarnessError: An incarnation is still alive, or none has run.
            RestartError: The restarted worker did not become quiet.
        """
        rig = self._rig
        if rig.alive or not rig.incarnations:
            raise HarnessError("restart when the last incarnation has become quiet and ended")
        begun = len(rig.incarnations)
        number = rig.start()
        self._must_be_quiet(number, "started again")
        ended = number not in rig.alive
        rig.save()
        after_restart = rig.last_image if ended else rig.image(restart_image_name(number))
        fresh = rig.workload.fresh
        rig.offer(fresh)
        if ended:
            # Only a start shows a fresh command to a worker that ends by itself.
            number = rig.start()
        self._must_be_quiet(number, f"offered command {fresh.command_id!r}", after_restart)
        if not ended:
            rig.kill(number)
        rig.save()
        return RestartResult(rig.incarnations[begun:], after_restart, rig.survivors())

    def held(self) -> None:
        """Do nothing: only what shares states wants to know."""

    def _must_be_quiet(self, number: int, when: str, after_restart: Image | None = None) -> None:
        try:
            halt = self._rig.run_until_quiet(number)
        except DeadlineError as error:
            note = f"{when}, the worker hung: {error}{_LONGER}"
            raise RestartError(note, Verdict.HUNG, after_restart) from None
        if not halt.quiet:
            note = f"{when}, the worker {_end_of(self._rig, number, halt)}"
            raise RestartError(note, Verdict.WRONG_DEATH, after_restart)


def settle(rig: Verbs) -> None:
    """Let every living incarnation become quiet, without faults, and end it.

    If none is alive, one is started: the recovery.

    Raises:
        DeadlineError: One did not become quiet in time.
        NotQuietError: One died instead.
    """
    for number in rig.alive or (rig.start(),):
        halt = rig.run_until_quiet(number)
        if not halt.quiet:
            raise _wrong_death(rig, number, halt, "recovering")
        if halt.hit is not None:
            rig.kill(number)


def _strike_all(rig: Verbs, schedule: Schedule, steps: Steps, fired: list[Fired]) -> None:
    """Do what the schedule says of the incarnations that have not run, and note what is proved."""
    begun = len(rig.incarnations)
    for index in range(begun, len(schedule.incarnations)):
        if index > begun:
            steps.begin(schedule.first(index))
        number = rig.start()
        for strike in schedule.incarnations[index]:
            _strike(rig, number, strike)
            fired.append(Fired(strike.moment, number))


def _strike(rig: Verbs, number: int, strike: Strike) -> None:
    if number not in rig.alive:
        raise EndedError(Verdict.NOT_FIRED, f"{strike.moment}: the incarnation was dead already")
    try:
        halt = rig.run_until(number, strike.moment)
    except DeadlineError as error:
        note = f"on the way to {strike.moment}, incarnation {number} hung: {error}{_LONGER}"
        raise NotQuietError(Verdict.HUNG, note) from None
    if halt.hit is None or not halt.hit.is_at(strike.moment):
        if halt.in_child:
            raise EndedError(
                Verdict.NOT_FIRED,
                f"{strike.moment} was reached by a child process alone, when the worker's own "
                "process had ended: nothing waits for such a child, and it cannot be struck",
            )
        if halt.quiet:
            raise EndedError(Verdict.NOT_FIRED, f"{strike.moment} was not reached before quiet")
        raise _wrong_death(rig, number, halt, f"on the way to {strike.moment}")
    death = rig.kill(number)
    if not death.killed:
        raise EndedError(
            Verdict.WRONG_DEATH, f"struck at {strike.moment}, it {describe_end(death, '')}"
        )


def _wrong_death(rig: Verbs, number: int, halt: Halt, when: str) -> NotQuietError:
    note = f"{when}, incarnation {number} {_end_of(rig, number, halt)}"
    return NotQuietError(Verdict.WRONG_DEATH, note)


def _end_of(rig: Verbs, number: int, halt: Halt) -> str:
    """Say how an incarnation ended that was not to end yet, and of what it ran out."""
    end = halt.exceeded or describe_end(halt.death, rig.scenario.quiet_at)
    if halt.hit is not None:
        end = f"stopped itself at {halt.hit.label}, and nobody had ordered it to"
    return "\n".join(filter(None, [end, rig.output(number).rstrip(), halt.bound]))
