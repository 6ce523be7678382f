"""Experiments that are written down as they finish, and are not run again where they have been.

Which experiments are asked for follows from results alone. So a run that is gone on with asks for
the same ones in the same order, is answered from its journal as far as that goes, and runs the
rest: nobody who decides what to run has to know that it was ever cut short.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.images.run_folder import RunFolder
from harness.record.journal_format import Asked, Finished

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from harness.experiment.lane import Job
    from harness.explore.executor import Executor
    from harness.model.result import ExperimentResult
    from harness.record.journal import Journal
    from harness.scenario import Scenario


class WrittenDown:
    """Runs experiments and writes down what they came to.

    Args:
        journal: Where; what is in it already is not run again. None to write nothing.
        begin: Begins the executor, given the names of scenarios that are known to leave something
            outside of their workspace. It is called once, and not before it is needed: what is
            known needs no lane.
    """

    def __init__(
        self, journal: Journal | None, begin: Callable[[frozenset[str]], Executor]
    ) -> None:
        self._journal = journal
        self._begin = begin
        self._executor: Executor | None = None
        self._prepared: dict[str, Scenario] = {}
        self._known: dict[Asked, deque[ExperimentResult]] = {}
        self._leaving: set[str] = set()
        self._planned = 0
        self._earlier_s = 0.0
        if journal is not None:
            for finished in journal.content.finished:
                if _has_evidence(finished, journal.directory):
                    self._known.setdefault(finished.asked, deque()).append(finished.result)
                if finished.result.outside:
                    self._leaving.add(finished.asked.scenario)
                self._earlier_s = finished.at_s
            self._planned = len(journal.content.planned)
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """How long the run has taken, in seconds, until it was cut short and since."""
        return self._earlier_s + time.monotonic() - self._began

    def prepare(self, scenarios: Iterable[Scenario]) -> None:
        """Take note of scenarios, and warm their workers if all of them are to be run.

        Raises:
            HarnessError: A worker could not be warmed.
            StopRequestedError: A signal asked for it.
        """
        new = {scenario.name: scenario for scenario in scenarios}
        self._prepared.update(new)
        if not self._known:
            self._warm(new)

    def run(
        self, jobs: Sequence[Job], *, keep: bool = True
    ) -> Iterator[tuple[int, ExperimentResult]]:
        """Run experiments; see `harness.explore.experiment_runner.ExperimentRunner.run`.

        What is known comes first, and is not interrupted by a signal: so a run that is cut short
        again has taken in all that it knew.

        Args:
            jobs: What to run; their scenarios have been prepared.
            keep: Whether to keep what broken ones left, if there is a directory for it.

        Yields:
            The index of a job and its result, as they end.

        Raises:
            HarnessError: The harness itself failed, or the journal cannot be written.
            StopRequestedError: A signal asked for it.
        """
        if not jobs:
            return
        asked = [_asked(job, kept=keep) for job in jobs]
        self._plan(len(jobs), kept=keep)
        missing = []
        for index, what in enumerate(asked):
            if known := self._known.get(what):
                yield index, replace(known.popleft(), schedule=jobs[index].schedule)
            else:
                missing.append(index)
        if not missing:
            return
        executor = self._warm({jobs[n].scenario: self._prepared[jobs[n].scenario] for n in missing})
        for at, result in executor.run([jobs[n] for n in missing], keep=keep):
            index = missing[at]
            if self._journal is not None:
                self._journal.finish(Finished(asked[index], result, round(self.seconds, 3)))
            yield index, result

    def end(self) -> None:
        """End the lanes; calling it again does nothing."""
        if self._executor is not None:
            self._executor.__exit__()
            self._executor = None

    def _warm(self, scenarios: dict[str, Scenario]) -> Executor:
        if self._executor is None:
            self._executor = self._begin(frozenset(self._leaving))
        self._executor.prepare(scenarios.values())
        return self._executor

    def _plan(self, experiments: int, *, kept: bool) -> None:
        """Write down what is asked for, unless the journal says so already."""
        if self._planned:
            self._planned -= 1
        elif self._journal is not None:
            self._journal.plan(experiments, kept=kept)


def _has_evidence(finished: Finished, run: Path) -> bool:
    """Tell whether what a broken experiment left is there: it may be recorded, not run again."""
    mark = finished.result.fingerprint if finished.asked.kept else ""
    return not mark or RunFolder(run).failure(mark).images.is_dir()


def _asked(job: Job, *, kept: bool) -> Asked:
    return Asked(
        job.scenario,
        str(job.schedule),
        job.seed,
        digests=job.digests,
        sharing=job.sharing.value,
        fresh=job.fresh,
        confirm=job.confirm,
        kept=kept,
    )
