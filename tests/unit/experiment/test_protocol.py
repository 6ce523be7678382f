"""The verdict of an experiment: what a strike must prove, and what each other end is called."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest
from harness_doubles import CLEAN, KILLED, NamedOracle, Scene, hit, scenario

from harness.experiment.ends import Recovery, RestartResult
from harness.experiment.protocol import RestartError, run_experiment, settle
from harness.experiment.rig import Halt
from harness.images.tree import UnimageableError
from harness.model.errors import DeadlineError
from harness.model.oracle import Evidence, Finding, OracleStatus
from harness.model.result import Fired, Verdict
from harness.model.schedule import CONTROL, Moment, parse
from harness.model.trace import Death, Hit
from harness.processes.incarnation import ForeignStopError
from harness.processes.trace_reader import DamagedTraceError

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.image import Image
    from harness.model.oracle import EndedIncarnation, Oracle
    from harness.model.result import ExperimentResult
    from harness.model.schedule import Schedule
    from harness.model.workload import Command, Workload
    from harness.scenario import Scenario

AT = Moment("order.charge.after")
STRUCK = parse("order.charge.after=kill")
THERE = Halt(hit("order.charge.after"), None, quiet=False)
QUIET = Halt(None, CLEAN, quiet=True)
IDLE = Halt(hit("worker.idle.before"), None, quiet=True)


@dataclass
class ToldRig:
    """A rig that does what it is told, in place of processes.

    Attributes:
        evidence: What it leaves.
        halts: How an incarnation comes to a halt on its way to a moment, or does not, in order.
        death: How what is killed dies.
        quiet: How an incarnation comes to a halt on its way to quiet.
        oracles: What the scenario is judged by.
        error: What the restart raises.
    """

    evidence: Evidence
    halts: list[Halt | DeadlineError] = field(default_factory=lambda: [THERE])
    death: Death = KILLED
    quiet: Halt = QUIET
    oracles: tuple[Oracle, ...] = (NamedOracle("first"),)
    error: Exception | None = None
    seed: int = 7
    started: int = 0
    alive: tuple[int, ...] = ()
    saved: bool = False

    @property
    def scenario(self) -> Scenario:
        """The scenario."""
        return replace(scenario(), oracles=self.oracles)

    @property
    def incarnations(self) -> tuple[EndedIncarnation, ...]:
        """The incarnations: all at once, as soon as there are any."""
        return self.evidence.incarnations if self.started else ()

    def start(self) -> int:
        """Begin an incarnation."""
        self.started += 1
        self.alive = (self.started,)
        return self.started

    def run_until(self, number: int, moment: Moment) -> Halt:
        """Halt as told."""
        halt = self.halts.pop(0)
        if isinstance(halt, DeadlineError):
            raise halt
        if halt.hit is None:
            self.alive = ()
        return halt

    def run_until_quiet(self, number: int) -> Halt:
        """Halt as told."""
        return self.quiet

    def kill(self, number: int) -> Death:
        """Die as told."""
        self.alive = ()
        return self.death

    @property
    def workload(self) -> Workload:
        """What is asked."""
        return self.evidence.workload

    @property
    def last_image(self) -> Image:
        """The last image."""
        return self.evidence.settled

    def offer(self, command: Command) -> None:
        """Offer nothing: the restart is told."""

    def image(self, name: str) -> Image:
        """Give the last image."""
        return self.last_image

    def survivors(self) -> tuple[str, ...]:
        """Find nobody."""
        return ()

    def output(self, number: int) -> str:
        """Return what the worker printed."""
        return "it printed this"

    def save(self) -> None:
        """Note that it was told to keep what there is."""
        self.saved = True


@dataclass
class ToldSteps:
    """The steps of such a rig."""

    rig: ToldRig
    remembered: bool = False

    def begin(self, prefix: Schedule) -> None:
        """Keep nothing."""

    def recover(self) -> Recovery:
        """Let the worker become quiet, and give what the test gave."""
        settle(self.rig)
        return Recovery(self.rig.evidence.recovered, self.rig.evidence.survivors)

    def restart(self) -> RestartResult:
        """Give what the test gave."""
        if self.rig.error is not None:
            raise self.rig.error
        evidence = self.rig.evidence
        return RestartResult((evidence.restarted,), evidence.after_restart, ())

    def held(self) -> None:
        """Note that what was found is to be known to others."""
        self.remembered = True


@pytest.fixture
def rig(tmp_path: Path) -> ToldRig:
    """Give a rig on which everything goes well."""
    return ToldRig(Scene(tmp_path).evidence())


def conducted(rig: ToldRig, schedule: Schedule = STRUCK) -> ExperimentResult:
    """Conduct a schedule; what did not hold is never known to others."""
    steps = ToldSteps(rig)
    result = run_experiment(rig, schedule, steps)
    assert rig.saved
    assert steps.remembered == (result.verdict is Verdict.HELD)
    return result


def verdict(rig: ToldRig, text: str = str(STRUCK)) -> tuple[Verdict, str]:
    """Conduct a schedule, and return verdict and note."""
    result = conducted(rig, parse(text))
    return result.verdict, result.note


def test_a_proved_strike_that_breaks_nothing_holds(rig: ToldRig) -> None:
    """The label and the hit are right, and the wait status says SIGKILL."""
    result = conducted(rig)
    assert (result.verdict, result.fired) == (Verdict.HELD, (Fired(AT, 1),))
    assert (result.seed, result.schedule) == (7, STRUCK)


@pytest.mark.parametrize("death", [CLEAN, Death(0, 1), Death(15, -1), Death(11, -1)])
def test_a_strike_without_the_right_death_is_none(rig: ToldRig, death: Death) -> None:
    """Whatever the oracles say, only SIGKILL proves a kill."""
    rig.death = death
    found, note = verdict(rig)
    assert found is Verdict.WRONG_DEATH
    assert note == f"struck at order.charge.after#1, it {death}"


@pytest.mark.parametrize(
    "wrong",
    [
        hit("order.charge.before"),
        hit("order.charge.after", 2),
        Hit("order.charge.after", {}, {"": 2}, stop=True),
    ],
)
def test_a_stop_at_another_moment_is_no_strike(rig: ToldRig, wrong: Hit) -> None:
    """A stop at another label or hit is a wrong death, and nothing is killed there."""
    rig.halts = [Halt(wrong, None, quiet=False)]
    found, note = verdict(rig)
    assert found is Verdict.WRONG_DEATH
    assert note.startswith("on the way to order.charge.after#1, incarnation 1")
    assert rig.alive == (1,)


@pytest.mark.parametrize("halt", [QUIET, IDLE])
def test_a_moment_that_was_not_reached_did_not_fire(rig: ToldRig, halt: Halt) -> None:
    """A worker that is quiet before the moment, by its point or its end, was not struck."""
    rig.halts = [halt]
    assert verdict(rig) == (
        Verdict.NOT_FIRED,
        "order.charge.after#1 was not reached before quiet",
    )


def test_a_second_strike_of_a_dead_incarnation_did_not_fire(rig: ToldRig) -> None:
    """Of two strikes of one incarnation the first leaves nothing for the second."""
    rig.halts = [THERE, THERE]
    found, note = verdict(rig, "order.charge.after=kill, order.finish.after=kill")
    assert (found, note) == (
        Verdict.NOT_FIRED,
        "order.finish.after#1: the incarnation was dead already",
    )


def test_a_moment_that_only_a_child_left_behind_reached_did_come(rig: ToldRig) -> None:
    """It was reached, where nothing can be struck, and the note said that it never came."""
    rig.halts = [Halt(None, CLEAN, quiet=True, in_child=True)]
    found, note = verdict(rig)
    assert found is Verdict.NOT_FIRED
    assert "was reached by a child process alone" in note


def test_a_kill_that_the_harness_did_not_send_is_no_strike(rig: ToldRig) -> None:
    """The kernel says the same of a worker that ended itself by SIGKILL where it stood."""
    rig.death = Death(9, -1, foreign=True)
    result = conducted(rig)
    assert result.verdict is Verdict.WRONG_DEATH
    assert "killed by SIGKILL, which the harness had not sent" in result.note
    assert result.fired == ()


def test_hits_that_are_not_kept_are_said(rig: ToldRig) -> None:
    """A bound that was reached is part of what came out."""
    recovered = replace(rig.evidence.recovered, hits=(hit("a.b.mid"),), hits_left_out=299_999)
    rig.evidence = replace(rig.evidence, recovered=recovered)
    result = conducted(rig)
    assert result.verdict is Verdict.HELD
    assert "incarnation 2 hit points 300,000 times; 1 of these" in result.note


def test_a_worker_that_dies_on_its_way_is_a_wrong_death_with_its_output(rig: ToldRig) -> None:
    """A death of something else is not a strike, and the reader sees what it printed."""
    rig.halts = [Halt(None, Death(0, 1), quiet=False)]
    found, note = verdict(rig)
    assert found is Verdict.WRONG_DEATH
    assert note.endswith("exited with code 1\nit printed this")


def test_a_control_leg_that_dies_is_a_wrong_death(rig: ToldRig) -> None:
    """A worker that fails without a fault does not start at all; that is not the strike's doing."""
    rig.quiet = Halt(None, Death(0, 1), quiet=False)
    found, note = verdict(rig, "")
    assert found is Verdict.WRONG_DEATH
    assert note.startswith("recovering, incarnation ")


def test_a_recovery_that_dies_after_a_strike_breaks_a_promise(rig: ToldRig) -> None:
    """It was only inconclusive, though it is what is reported most: it never starts again."""
    rig.quiet = Halt(None, Death(0, 1), quiet=False)
    result = conducted(rig)
    assert (result.verdict, result.oracles) == (Verdict.BROKEN, ("starts-again",))
    (violation,) = result.violations
    assert violation.message == "recovering, incarnation 2 exited with code 1"
    assert result.note.endswith("it printed this"), "the note has all of it"


def test_other_oracles_judge_what_a_failed_recovery_left(rig: ToldRig) -> None:
    """What they find broken is said; what they cannot tell without the rest is not."""
    rig.quiet = Halt(None, Death(0, 1), quiet=False)
    rig.oracles = (NamedOracle("first", ("it happened",)), Doubtful(), NamedOracle("third"))
    result = conducted(rig)
    assert result.oracles == ("first", "starts-again")


def test_a_worker_that_stands_at_its_quiet_point_is_ended(rig: ToldRig) -> None:
    """A worker that goes on for ever is judged when it is dead."""
    rig.quiet = IDLE
    assert verdict(rig, str(CONTROL)) == (Verdict.HELD, "")
    assert rig.alive == ()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (DeadlineError("quiet", 5), Verdict.HUNG),
        (ForeignStopError("stopped by itself"), Verdict.WRONG_DEATH),
        (RestartError("it died"), Verdict.WRONG_DEATH),
    ],
)
def test_every_other_end_has_its_verdict(rig: ToldRig, error: Exception, expected: Verdict) -> None:
    """No other end is a pass, and the note says what it was."""
    rig.error = error
    assert verdict(rig, "") == (expected, str(error))


@pytest.mark.parametrize("error", [RestartError("it hung", Verdict.HUNG), RestartError("it died")])
def test_a_restart_that_fails_after_a_strike_breaks_a_promise(
    rig: ToldRig, error: Exception
) -> None:
    """A worker that recovers and never starts again after that is as stuck."""
    rig.error = error
    result = conducted(rig)
    assert (result.verdict, result.oracles) == (Verdict.BROKEN, ("starts-again",))
    assert result.violations[0].message == str(error)


def test_a_death_that_the_machine_did_not_tell_of_is_not_the_workers_fault(rig: ToldRig) -> None:
    """The wait for a wait status can end in vain; that is no promise of the worker's."""
    rig.error = DeadlineError("death of incarnation 2", 10)
    assert verdict(rig) == (Verdict.HUNG, str(rig.error))


@pytest.mark.parametrize(
    "halt", [Halt(None, Death(0, 1), quiet=False), DeadlineError("order.finish.after", 5)]
)
def test_a_recovery_that_fails_on_its_way_to_the_next_strike_breaks_a_promise(
    rig: ToldRig, halt: Halt | DeadlineError
) -> None:
    """It is the recovery from the first strike, whatever was to be done to it."""
    rig.halts = [THERE, halt]
    result = conducted(rig, parse("order.charge.after=kill / order.finish.after=kill"))
    assert (result.verdict, result.oracles) == (Verdict.BROKEN, ("starts-again",))
    assert result.violations[0].message.startswith("on the way to order.finish.after#1, inc")
    assert [fired.incarnation for fired in result.fired] == [1]


@dataclass
class Asked:
    """An oracle that remembers what it was shown."""

    name: str = "asked"
    promise: str = "what was promised"
    seen: Evidence | None = None

    def check(self, evidence: Evidence) -> Finding:
        """Remember."""
        self.seen = evidence
        return Finding(OracleStatus.HOLDS)


@pytest.mark.parametrize("offered", [False, True])
def test_oracles_know_whether_a_stuck_worker_was_offered_the_fresh_command(
    rig: ToldRig, *, offered: bool
) -> None:
    """A command that was never offered was said to have never had its effect."""
    oracle = Asked()
    rig.oracles = (oracle,)
    quiet_at = rig.evidence.after_restart if offered else None
    rig.error = RestartError("it died", after_restart=quiet_at)
    conducted(rig)
    assert oracle.seen is not None
    assert oracle.seen.fresh_offered == offered
    assert [c.command_id for c in oracle.seen.asked] == ["c1", *["fresh"] * offered]
    assert oracle.seen.after_restart == (quiet_at or rig.evidence.settled)


def test_a_recovery_that_failed_is_shown_once(rig: ToldRig) -> None:
    """It stands for the restart that never was, and must not be looked at twice."""
    oracle = Asked()
    rig.oracles = (oracle,)
    rig.quiet = Halt(None, Death(0, 1), quiet=False)
    rig.evidence = replace(rig.evidence, restarted=rig.evidence.recovered)
    conducted(rig)
    assert oracle.seen is not None
    assert [life.number for life in oracle.seen.incarnations] == [1, 2]
    assert [when for when, _ in oracle.seen.images] == [
        "after incarnation 1",
        "after the recovery that failed",
    ]


@pytest.mark.parametrize("error", [DamagedTraceError("forged"), UnimageableError("too deep")])
def test_what_is_no_evidence_is_unknown(rig: ToldRig, error: Exception) -> None:
    """A worker that spoils the evidence is not judged, and the note says what it did."""
    rig.error = error
    assert verdict(rig) == (Verdict.UNKNOWN, f"what the worker left is no evidence: {error}")


@dataclass(frozen=True)
class Doubtful:
    """An oracle that cannot tell, or fails."""

    fails: bool = False
    name: str = "doubtful"
    promise: str = "what was promised"

    def check(self, evidence: Evidence) -> Finding:
        """Answer."""
        if self.fails:
            raise LookupError("no books")
        return Finding(OracleStatus.UNKNOWN, ("no file",))


@pytest.mark.parametrize(
    ("oracle", "note"),
    [
        (Doubtful(), "oracle doubtful cannot tell: no file"),
        (Doubtful(fails=True), "oracle doubtful failed: LookupError: no books"),
    ],
)
def test_a_doubt_is_no_pass_and_broken_is_stronger(
    rig: ToldRig, oracle: Doubtful, note: str
) -> None:
    """*unknown* is not *holds*; an oracle that fails says nothing of the worker."""
    rig.oracles = (NamedOracle("first"), oracle)
    assert verdict(rig) == (Verdict.UNKNOWN, note)
    rig.oracles = (oracle, NamedOracle("first", ("it happened",)))
    rig.halts = [THERE]
    result = conducted(rig)
    assert (result.verdict, result.note) == (Verdict.BROKEN, note)
    assert [violation.message for violation in result.violations] == ["it happened"]
