"""What a scenario came to: its experiments together, against its pin and its catalogue."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING

from harness.model.result import Verdict
from harness.model.schedule import CONTROL, Moment
from harness.record.fork_sample import NO_SAMPLE, ForkSample
from harness.record.pins import NO_PINS, Pins

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from harness.model.result import ExperimentResult
    from harness.moments.catalogue import Catalogue
    from harness.record.pins import KnownFailure
    from harness.scenario import Scenario


class ExitCode(IntEnum):
    """Exit codes of the command."""

    AS_PINNED = 0
    BROKEN = 1
    USAGE = 2
    INCONCLUSIVE = 3
    HARNESS = 4
    INTERRUPTED = 130
    TERMINATED = 143


@dataclass(frozen=True, slots=True)
class MomentTally:
    """What became of a moment.

    Attributes:
        moment: The moment.
        source: ``file:line`` of its point, or empty when the catalogue does not know it.
        reached: Whether any incarnation reached it.
        struck: In how many experiments it was struck, with proof.
        struck_in_recovery: In how many of those after an earlier crash.
        survived: Whether every experiment that struck it held.
    """

    moment: Moment
    source: str
    reached: bool
    struck: int
    struck_in_recovery: int
    survived: bool


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """What was run of a scenario, before it is judged beside others.

    Attributes:
        scenario: The scenario.
        catalogue: The points that its worker declares.
        results: In the order of the plan, the control leg first; none when the run ended before
            it came to this scenario.
        whole: Whether a whole tier was run to its end, so that points not reached count.
        bounds: What the tier left out, in words.
        finished: Whether everything that was planned has been run.
        sample: How experiments compare with those of an interpreter per incarnation.
    """

    scenario: Scenario
    catalogue: Catalogue
    results: tuple[ExperimentResult, ...]
    whole: bool
    bounds: tuple[str, ...] = ()
    finished: bool = True
    sample: ForkSample = NO_SAMPLE


@dataclass(frozen=True)
class ScenarioOutcome(ScenarioRun):
    """The experiments of a scenario, judged.

    Attributes:
        reached_together: Labels that the other scenarios of its group reached in this run; None
            when some of them were not run, so that nothing can be said of points not reached.
        pins: Failures that are known.
    """

    reached_together: frozenset[str] | None = frozenset()
    pins: Pins = NO_PINS

    @property
    def outside(self) -> tuple[str, ...]:
        """What the worker left outside of its workspace, as far as it is known."""
        return tuple(sorted({left for result in self.results for left in result.outside}))

    @property
    def control(self) -> ExperimentResult:
        """The leg without a fault."""
        return self.results[0]

    @cached_property
    def moments(self) -> tuple[MomentTally, ...]:
        """Every moment that was aimed at, and every declared point that nothing reached."""
        struck: Counter[Moment] = Counter()
        in_recovery: Counter[Moment] = Counter()
        aimed: dict[Moment, None] = {}
        fallen: set[Moment] = set()
        for result in self.results:
            aimed.update(dict.fromkeys(result.schedule.moments))
            struck.update({fired.moment for fired in result.fired})
            in_recovery.update({f.moment for f in result.fired if f.incarnation > 1})
            if result.verdict is not Verdict.HELD:
                fallen.update(fired.moment for fired in result.fired)
        return tuple(
            MomentTally(
                moment=moment,
                source=self.catalogue[moment.label].source
                if moment.label in self.catalogue
                else "",
                reached=struck[moment] > 0 or self._reached(moment),
                struck=struck[moment],
                struck_in_recovery=in_recovery[moment],
                survived=struck[moment] > 0 and moment not in fallen,
            )
            for moment in (*aimed, *map(Moment, self.unreached))
        )

    def _reached(self, moment: Moment) -> bool:
        return any(
            hit.is_at(moment)
            for result in self.results
            for life in result.incarnations
            for hit in life.hits
        )

    @cached_property
    def unreached(self) -> tuple[str, ...]:
        """Declared labels that nothing reached, though a whole tier was run.

        Of a group of scenarios (`Scenario.together`), one reaching it is enough.
        """
        if not (self.whole and self.scenario.must_reach_all) or self.reached_together is None:
            return ()
        wanted = self.scenario.strike or self.catalogue.labels
        reached = reached_labels(self.results) | self.reached_together
        return tuple(
            label for label in self.catalogue.labels if label in wanted and label not in reached
        )

    @cached_property
    def exit_code(self) -> ExitCode:
        """What this scenario alone asks the command to return."""
        if self.results and self.mismatch and self.control.verdict is Verdict.HELD:
            return ExitCode.BROKEN
        inconclusive = not self.finished or next(self.inconclusive(), None) is not None
        return ExitCode.INCONCLUSIVE if inconclusive else ExitCode.AS_PINNED

    @cached_property
    def mismatch(self) -> str:
        """Why the outcome is not the pinned one, or empty."""
        broken = [r for r in self.results if r.verdict is Verdict.BROKEN]
        pin = self.scenario.pin
        if pin.outcome == "holds":
            return self._against_pins(broken)
        if not self.whole or any(pin.oracle in result.oracles for result in broken):
            return ""
        others = sorted({name for result in broken for name in result.oracles})
        caught = f"only {', '.join(others)} did" if others else "none did"
        where = "" if pin.tier == "smoke" else f" in the tier {pin.tier}"
        return f"pinned broken by {pin.oracle}{where}, but {caught}"

    def _against_pins(self, broken: list[ExperimentResult]) -> str:
        new = [result for result in broken if not self.pins.know(result)]
        found = []
        if new:
            known = f", {len(broken) - len(new)} more are pinned" if len(new) < len(broken) else ""
            found.append(f"{len(new)} experiment{'s' * (len(new) != 1)} broke a promise{known}")
        fixed = self.fixed_pins
        if fixed:
            count = f"{len(fixed)} pinned failure{'s' * (len(fixed) != 1)}"
            found.append(f"{count} no longer there, unpin: {'; '.join(map(str, fixed))}")
        return "; ".join(found)

    @cached_property
    def fixed_pins(self) -> tuple[KnownFailure, ...]:
        """Pins of this scenario whose failure is gone."""
        return self.pins.fixed(self.results, [oracle.name for oracle in self.scenario.judges])

    def inconclusive(self) -> Iterator[str]:
        """Give every reason in the experiments why nothing, or not all, can be said about it."""
        if not self.results:
            return
        if self.control.verdict is not Verdict.HELD:
            found = "; ".join(f"{v.oracle}: {v.message}" for v in self.control.violations)
            yield f"the control leg, without a fault, was {self.control.verdict}: " + (
                found or self.control.note
            )
        elif self.whole and not any(result.fired for result in self.results):
            yield self._why_nothing_was_struck()
        for result in self.results:
            if result.schedule != CONTROL and result.verdict not in (Verdict.HELD, Verdict.BROKEN):
                yield f"{result.experiment_id}: {result.verdict}: {result.note}"
        yield from self.sample.inconclusive()
        for label in self.unreached:
            yield f"{self.catalogue[label].source}: {label} is declared and was never reached"

    def _why_nothing_was_struck(self) -> str:
        reached = reached_labels(self.results)
        packages = ", ".join(self.scenario.points)
        if len(self.results) > 1:
            why = f"none of {len(self.results) - 1} planned strikes is proved"
        elif reached:
            struck = ", ".join(self.scenario.strike)
            why = f"none of the labels to strike was reached ({struck})"
        elif len(self.catalogue):
            why = (
                f"no crash point was reached, though {len(self.catalogue)} are declared in "
                f"{packages}: this workload does not come there, or another program does, in which "
                "no point is armed"
            )
        elif packages:
            why = f"no crash point was reached, and none is declared in {packages}"
        else:
            why = "no crash point was reached, and the scenario names no package in points"
        return f"nothing was struck, so nothing is proved: {why}; see docs/reports.md"


def reached_labels(results: Iterable[ExperimentResult]) -> frozenset[str]:
    """Return the labels that any incarnation of some experiments reached."""
    return frozenset(
        hit.label for result in results for life in result.incarnations for hit in life.hits
    )


def judge_together(
    runs: Iterable[ScenarioRun],
    *,
    groups: Mapping[str, frozenset[str]] | None = None,
    pins: Pins = NO_PINS,
) -> tuple[ScenarioOutcome, ...]:
    """Judge the scenarios of a run, each with what the others of its group reached.

    Args:
        runs: What was run.
        groups: Names of the scenarios of each group (`Scenario.together`), whether they were run
            or not. A group of which not all were run to the end is not judged by points that were
            not reached.
        pins: Failures that are known.

    Returns:
        One outcome per scenario, in their order.
    """
    given = tuple(runs)
    whole = {run.scenario.name for run in given if run.whole}
    reached: dict[str, frozenset[str]] = {}
    for run in given:
        group = run.scenario.together
        if group:
            reached[group] = reached.get(group, frozenset()) | reached_labels(run.results)

    def together(group: str) -> frozenset[str] | None:
        if not group:
            return frozenset()
        members = (groups or {}).get(group)
        return reached[group] if members is not None and members <= whole else None

    return tuple(
        ScenarioOutcome(
            run.scenario,
            run.catalogue,
            run.results,
            whole=run.whole,
            reached_together=together(run.scenario.together),
            bounds=run.bounds,
            pins=pins,
            finished=run.finished,
            sample=run.sample,
        )
        for run in given
    )


def exit_code(outcomes: tuple[ScenarioOutcome, ...]) -> ExitCode:
    """Return the exit code of a run that is through."""
    return strongest(outcome.exit_code for outcome in outcomes)


def strongest(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the code that stands for several: broken is stronger than inconclusive."""
    return min(set(codes) - {ExitCode.AS_PINNED}, default=ExitCode.AS_PINNED)
