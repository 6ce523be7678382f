"""The session of a pytest process: what its items have run, and the record of it.

Nothing runs before an item does. Items of one scenario share its exploration, so each experiment
runs once, whichever items are selected and in whatever order.
"""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from harness.explore.session import NOBODY, Session, SessionRequest
from harness.images.run_folder import RunFolder
from harness.images.workspace import default_root
from harness.model.errors import HarnessError, UsageError
from harness.model.schedule import CONTROL
from harness.pytest_plugin.settings import NO_RECORD, OUT_INI
from harness.record.pins import pins_in
from harness.report.output import Surroundings
from harness.report.outputs import Outputs

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.result import ExperimentResult
    from harness.model.schedule import Schedule
    from harness.record.outcome import ScenarioOutcome
    from harness.scenario import Scenario

_OUTPUTS = ("repro", "html")


class ProcessSession:
    """The session of one pytest process, and a plugin of its own from when it is made.

    Args:
        config: Pytest's configuration.

    Attributes:
        tier: Name of the tier.
        seed: Source of everything random.
        pins: Failures that are known.
        incarnations: How many process lives the items have started so far.
        notes: What is to be told at the end, a line each.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.tier = str(config.getoption("--crash-tier"))
        self.seed = int(config.getoption("--crash-seed"))
        self.pins = pins_in(config.rootpath)
        self.incarnations = 0
        self.notes: list[str] = []
        out = str(config.getoption("--crash-out") or config.getini(OUT_INI))
        self._out = None if out == NO_RECORD else config.rootpath / out
        self._session: Session | None = None
        self._directory: Path | None = None

    @classmethod
    def of(cls, config: pytest.Config) -> ProcessSession:
        """Return the session of a pytest process; the first call makes it."""
        if _KEY not in config.stash:
            session = config.stash[_KEY] = cls(config)
            config.pluginmanager.register(session, "crash-harness-session")
        return config.stash[_KEY]

    def control(self, scenario: Scenario) -> ExperimentResult:
        """Return the result of a scenario's control leg."""
        exploration = self._started().exploration(scenario)
        if not exploration.results:
            self._run(scenario, CONTROL)
        return exploration.results[0]

    def strike(self, scenario: Scenario, label: str) -> ExperimentResult | None:
        """Return the result of the tier's first strike at a point.

        Args:
            scenario: The scenario.
            label: The point. One that only a recovery reaches is struck there, after the crashes
                before it.

        Returns:
            The result, or None if no experiment of the tier reaches the point.
        """
        exploration = self._started().exploration(scenario)
        self.control(scenario)
        while True:
            for result in exploration.results:
                if result.schedule.moments and result.schedule.moments[-1].label == label:
                    return result
            wanted = exploration.wanted
            if not wanted:
                return None
            mine = [schedule for schedule in wanted if schedule.moments[-1].label == label]
            for schedule in mine[:1] or wanted:
                self._run(scenario, schedule)

    def finished(self, scenario: Scenario) -> ScenarioOutcome:
        """Run what is left of a scenario's tier, and return what it came to."""
        session = self._started()
        exploration = session.exploration(scenario)
        while not exploration.finished:
            for schedule in exploration.wanted:
                self._run(scenario, schedule)
        (outcome,) = (each for each in session.outcomes if each.scenario is scenario)
        return outcome

    def page(self, result: ExperimentResult) -> Path | None:
        """Return where the page of a failure will be once pytest has ended; None: nowhere."""
        if self._directory is None or not result.fingerprint:
            return None
        return RunFolder(self._directory).failure(result.fingerprint).report

    def pytest_report_collectionfinish(self) -> str:
        """Say how many process lives collecting has started."""
        return f"crash-harness: {self.incarnations} incarnations started to collect"

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Take note that pytest ends before it is through; the record says so."""
        if self._session is not None:
            self._session.interrupt(excinfo.value)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the record, and say where it is."""
        self.close()
        for note in self.notes:
            terminalreporter.write_line(f"crash-harness: {note}")

    def pytest_unconfigure(self) -> None:
        """Write the record if nobody has; processes of pytest-xdist have no summary."""
        self.close()

    def close(self) -> None:
        """End the lane, and write down what was run."""
        session, self._session = self._session, None
        if session is None:
            return
        try:
            result = session.finish()
        except (HarnessError, OSError) as error:
            self.notes.append(f"the record was not written: {error}")
        else:
            if result.record is not None:
                self.notes.append(f"record: {result.directory}")

    def _run(self, scenario: Scenario, schedule: Schedule) -> None:
        result = self._started().run(scenario, schedule)
        self.incarnations += len(result.incarnations)

    def _started(self) -> Session:
        if self._session is None:
            self._session = self._begun(self._out)
        return self._session

    def _begun(self, out: Path | None) -> Session:
        request = SessionRequest(
            (), default_root(), out=out, tier=self.tier, seed=self.seed, pins=self.pins
        )
        quiet = Surroundings(Console(file=io.StringIO()), lambda _line: None, os.environ)
        handler = NOBODY if out is None else Outputs(_OUTPUTS, quiet)
        try:
            session = Session(request, handler).__enter__()
        except UsageError as error:
            if out is None:
                raise
            self.notes.append(f"no record is written: {error}")
            return self._begun(None)
        self._directory = session.directory
        return session


_KEY = pytest.StashKey[ProcessSession]()
