"""The use case: scenarios are run, what broke is shrunk, and everything is written down.

The command, the pytest plugin and the gallery all use a `Session`; `run_session` is the whole of it
in one call, as the command needs it. A run that is interrupted, or in which the harness fails, is
recorded as far as it came; one that is killed has its journal.
"""

from __future__ import annotations

import signal
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from harness.experiment.lane import Job
from harness.explore.compare_forks import compare_forks
from harness.explore.executor import Executor
from harness.explore.exploration import Exploration
from harness.explore.matrix import run_matrix
from harness.explore.run_handler import NOBODY
from harness.explore.session_request import SessionResult
from harness.explore.shrink import Shrinker
from harness.explore.stop_signals import StopRequestedError
from harness.explore.written_down import WrittenDown
from harness.images.deletion import remove_tree
from harness.images.run_folder import RunFolder
from harness.model.errors import HarnessError
from harness.model.events import (
    ExperimentFinished,
    Interrupted,
    RunFailed,
    RunFinished,
    RunStarted,
)
from harness.record.environment import environment
from harness.record.interruption import Interruption, exit_code_of_run
from harness.record.journal import Journal
from harness.record.journal_format import SCHEMA, HeaderLine
from harness.record.minimal import minimal_row
from harness.record.outcome import judge_together
from harness.record.write_run import RunMetadata, new_run_dir, write_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from harness.explore.run_handler import RunHandler
    from harness.explore.session_request import SessionRequest
    from harness.explore.stop_signals import StopSignals
    from harness.model.result import ExperimentResult
    from harness.model.schedule import Schedule
    from harness.record.minimal import Minimal
    from harness.record.outcome import ScenarioOutcome
    from harness.scenario import Scenario


class Session:
    """A run, step by step.

    As a context manager it makes the run's folder, with its journal, and ends the lanes. Leaving it
    without `finish` removes the folder: one without a record is no run. When it is left by an error
    after an experiment has finished, the folder stays, and the command can go on with its journal.

    Args:
        request: What to do.
        handler: Is told what happens.
        stop: Is heard between experiments; a signal there raises `StopRequestedError` out of the
            step that runs them.

    Raises:
        UnknownNameError: The tier, or a label of a schedule or of `Scenario.strike`, is not known.
    """

    def __init__(
        self,
        request: SessionRequest,
        handler: RunHandler = NOBODY,
        stop: StopSignals | None = None,
    ) -> None:
        self.request = request
        self._handler = handler
        self._stop = stop
        self._explorations: dict[str, Exploration] = {}
        for scenario in request.scenarios:
            self.exploration(scenario)
        self._journal = request.resumed
        self._experiments = WrittenDown(self._journal, self._lanes)
        self._minimal: dict[str, Minimal] = {}
        self._interruption: Interruption | None = None
        self._fault: Exception | None = None
        self._started = datetime.now(UTC)
        self._directory: Path | None = None

    def __enter__(self) -> Self:
        self._started = datetime.now(UTC)
        if self._journal is not None:
            self._started = datetime.fromisoformat(self._journal.content.header["started"])
            self._directory = self._journal.directory
        elif self.request.out is not None:
            self._directory = new_run_dir(self.request.out, self._started)
            self._journal = Journal.begin(self._directory, self._header())
        self._experiments = WrittenDown(self._journal, self._lanes)
        self._handler.start(self._directory)
        names = tuple(self._explorations)
        tier = "" if self.request.at else self.request.tier
        self._handler.handle(RunStarted(names, tier, self.request.seed, self.request.jobs))
        return self

    def __exit__(self, error: type[BaseException] | None, *_error: object) -> None:
        self._experiments.end()
        directory, self._directory = self._directory, None
        nothing = self._journal is None or self._journal.is_empty
        if self._journal is not None:
            self._journal.close(over=False)
        if directory is not None and (error is None or nothing):
            with suppress(OSError):
                remove_tree(directory)

    @property
    def directory(self) -> Path | None:
        """The run's folder, if anything is written down."""
        return self._directory

    @property
    def kept(self) -> Path:
        """Where lanes put what broken experiments and control legs left.

        Raises:
            HarnessError: Nothing is kept, as the request has no `out`.
        """
        if self._directory is None:
            raise HarnessError("this session keeps nothing: its request has no directory `out`")
        return RunFolder(self._directory).kept

    @property
    def minimal(self) -> Mapping[str, Minimal]:
        """The shortest schedules that `shrink` has found, by the fingerprint of the failure."""
        return self._minimal

    @property
    def outcomes(self) -> tuple[ScenarioOutcome, ...]:
        """What the scenarios have come to so far."""
        return judge_together(
            (exploration.summary() for exploration in self._explorations.values()),
            groups=self.request.groups,
            pins=self.request.pins,
        )

    def exploration(self, scenario: Scenario) -> Exploration:
        """Return the plan of a scenario with its results so far.

        Args:
            scenario: One of the request, or another that joins the session by this.

        Raises:
            UnknownNameError: A label of its schedule or of `Scenario.strike` is not known.
        """
        found = self._explorations.get(scenario.name)
        if found is None:
            request = self.request
            at = request.at.get(scenario.name)
            found = Exploration(scenario, request.tier, request.seed, at)
            self._explorations[scenario.name] = found
        return found

    def explore(self, scenarios: Iterable[Scenario] | None = None) -> None:
        """Run the plans of scenarios to their ends.

        Args:
            scenarios: Which; by default all of the session.

        Raises:
            HarnessError: The harness failed, or was asked to stop.
        """
        if scenarios is None:
            chosen = list(self._explorations.values())
        else:
            chosen = [self.exploration(scenario) for scenario in scenarios]
        experiments = self._prepared(exploration.scenario for exploration in chosen)
        run_matrix(
            chosen,
            experiments,
            self._handler.handle,
            seed=self.request.seed,
        )

    def compare(self) -> None:
        """Run a sample of what has been explored with an interpreter per incarnation, and compare.

        Raises:
            HarnessError: The harness failed, or was asked to stop.
        """
        request = self.request
        through = [each for each in self._explorations.values() if each.finished]
        experiments = self._prepared(exploration.scenario for exploration in through)
        compare_forks(
            through, experiments, self._handler.handle, tier=request.tier, seed=request.seed
        )

    def run(self, scenario: Scenario, schedule: Schedule) -> ExperimentResult:
        """Run one experiment of a scenario, of its plan or not, and add it to its results.

        Args:
            scenario: The scenario.
            schedule: The schedule. For those that its plan wants next see `Exploration.wanted`.

        Raises:
            HarnessError: The harness failed, or was asked to stop.
        """
        exploration = self.exploration(scenario)
        job = Job(scenario.name, schedule, self.request.seed, digests=exploration.digests)
        ((_, result),) = self._prepared([scenario]).run([job])
        exploration.add(result)
        self._handler.handle(ExperimentFinished(result))
        return result

    def shrink(self) -> None:
        """Look for shorter schedules that break the same promises; see `minimal`.

        Raises:
            HarnessError: The harness failed, or was asked to stop.
        """
        results = [result for outcome in self.outcomes for result in outcome.results]
        if not results:
            return
        experiments = self._prepared(e.scenario for e in self._explorations.values() if e.results)
        shrinker = Shrinker(experiments, self._handler.handle)
        self._minimal = shrinker.found  # what was found before an interruption counts
        shrinker.shrink_all(results)

    def interrupt(self, reason: BaseException | Interruption) -> None:
        """Take note that the run ends before it is through; call `finish` next.

        Args:
            reason: What was raised: `StopRequestedError`, KeyboardInterrupt, or an error. Or the
                interruption itself.
        """
        if isinstance(reason, Interruption):
            self._interruption = reason
        elif isinstance(reason, StopRequestedError):
            self._interruption = Interruption.by_signal(reason.number)
        elif isinstance(reason, KeyboardInterrupt):
            self._interruption = Interruption.by_signal(signal.SIGINT)
        else:
            self._interruption = Interruption.by_fault(reason)
            self._fault = reason if isinstance(reason, Exception) else None
            self._handler.handle(RunFailed(str(reason) or type(reason).__name__))
            return
        self._handler.handle(Interrupted(self._interruption.why))

    def finish(self) -> SessionResult:
        """End the lanes, write the record, and let the handler write what it makes of it.

        A run that was interrupted before any experiment had finished leaves no record.

        Raises:
            HarnessError: The record, or what the handler makes of it, cannot be written.
        """
        self._experiments.end()
        seconds = self._experiments.seconds
        outcomes = self.outcomes
        directory = self._directory
        journal = self._journal
        record = None
        try:
            if directory is not None and any(outcome.results for outcome in outcomes):
                kept = journal.kept if journal is not None and self._can_go_on else None
                record = write_record(directory, outcomes, self._metadata(seconds), kept)
            elif directory is not None and (journal is None or journal.is_empty):
                with suppress(OSError):
                    remove_tree(directory)
                directory = None
        except Exception as error:
            if directory is not None:
                with suppress(OSError):  # what is in it was found, and is kept
                    directory.rmdir()
            self._handler.handle(RunFailed(str(error)))
            raise
        finally:
            self._directory = None
            self._handler.handle(RunFinished(seconds))
            try:
                self._handler.close(record)
            finally:
                if journal is not None:
                    journal.close(over=record is not None and not self._can_go_on)
        code = exit_code_of_run(outcomes, self._interruption)
        return SessionResult(outcomes, code, directory, record, self._fault)

    def _prepared(self, scenarios: Iterable[Scenario]) -> WrittenDown:
        self._experiments.prepare(scenarios)
        return self._experiments

    def _lanes(self, leaving: frozenset[str]) -> Executor:
        request = self.request
        keep = self.kept.resolve() if self._directory is not None else None
        return Executor(
            request.jobs, request.root, keep, self._stop, seed=request.seed, leaving=leaving
        )

    @property
    def _can_go_on(self) -> bool:
        """Whether the run was cut short, and the command can go on with it."""
        return self._interruption is not None and self.request.command is not None

    def _header(self) -> HeaderLine:
        request = self.request
        return {
            "journal": SCHEMA,
            "started": self._started.isoformat(),
            "tier": "" if request.at else request.tier,
            "seed": request.seed,
            "scenarios": list(self._explorations),
            "command": request.command,
        }

    def _metadata(self, seconds: float) -> RunMetadata:
        request = self.request
        scenarios = [exploration.scenario for exploration in self._explorations.values()]
        return RunMetadata(
            tier="" if request.at else request.tier,
            seed=request.seed,
            lanes=request.jobs,
            started=self._started,
            seconds=seconds,
            scenarios_from=request.scenarios_from,
            environment=environment((point for s in scenarios for point in s.points), request.seed),
            minimal={mark: minimal_row(found) for mark, found in self._minimal.items()},
            pins=request.pins,
            interruption=self._interruption,
        )


def run_session(
    request: SessionRequest, handler: RunHandler = NOBODY, stop: StopSignals | None = None
) -> SessionResult:
    """Run scenarios, compare a sample, shrink what broke, and write everything down.

    Args:
        request: What to do.
        handler: Is told what happens.
        stop: Signals that end the run; what has finished before is recorded.

    Raises:
        UnknownNameError: The tier, or a label of a schedule or of `Scenario.strike`, is not known.
        UsageError: The folder of the run cannot be made.
        HarnessError: The harness failed before any experiment had finished, or in writing.
    """
    with Session(request, handler, stop) as session:
        try:
            session.explore()
            session.compare()
            session.shrink()
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - recorded, then raised
            session.interrupt(error)
        return session.finish()
