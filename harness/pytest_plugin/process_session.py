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

from harness.explore.run_handler import NOBODY
from harness.explore.scenario_files import groups
from harness.explore.session import Session
from harness.explore.session_request import SessionRequest
from harness.explore.tiers import TIERS
from harness.images.root import default_root
from harness.images.run_folder import RunFolder
from harness.model.errors import HarnessError, UnknownNameError, UsageError
from harness.model.schedule import CONTROL
from harness.moments.catalogue import scan
from harness.pytest_plugin.settings import FOLDER_INI, NO_RECORD, NOTES, OUT_INI, OUTPUT_KEY
from harness.record.interruption import Interruption
from harness.record.outcome import ExitCode
from harness.record.pins import pins_in
from harness.report.output import Surroundings
from harness.report.outputs import Outputs

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.result import ExperimentResult
    from harness.model.schedule import Schedule
    from harness.record.outcome import ScenarioOutcome
    from harness.scenario import Scenario

_NO_SCENARIOS = ("__init__.py", "conftest.py")
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

    Raises:
        UsageError: The tier is not known, or the pins file cannot be read.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.tier = str(config.getoption("--crash-tier"))
        if self.tier not in TIERS:
            raise UnknownNameError("tier", self.tier, TIERS)
        self.seed = int(config.getoption("--crash-seed"))
        self.pins = pins_in(config.rootpath)
        self.incarnations = 0
        self._config = config
        self._notes = config.stash[NOTES]
        self._folder = config.rootpath / str(config.getini(FOLDER_INI))
        self._files: set[Path] = set()
        self._known: dict[str, tuple[Scenario, Path]] = {}
        out = str(config.getoption("--crash-out") or config.getini(OUT_INI))
        self._out = None if out == NO_RECORD else config.rootpath / out
        self._session: Session | None = None
        self._directory: Path | None = None
        self._interrupted = False

    @classmethod
    def of(cls, config: pytest.Config) -> ProcessSession:
        """Return the session of a pytest process; the first call makes it."""
        if _KEY not in config.stash:
            session = config.stash[_KEY] = cls(config)
            config.pluginmanager.register(session, "crash-harness-session")
        return config.stash[_KEY]

    def collect(self, file: Path) -> None:
        """Take note of a file that is collected, whether a scenario is in it or not."""
        self._files.add(file)

    def join(self, scenario: Scenario, file: Path) -> None:
        """Take note of a scenario that is collected.

        Args:
            scenario: The scenario.
            file: Where it is assigned.

        Raises:
            UsageError: Another has its name, or a pin of it names a point that is not declared.
        """
        known, other = self._known.setdefault(scenario.name, (scenario, file))
        if known is not scenario:
            raise UsageError(
                f"two scenarios are named {scenario.name!r}, in {other} and in {file}: rename one"
            )
        self.pins.check({scenario.name: scan(scenario.points)})

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
        return f"crash-harness: {self.incarnations} incarnations started for collection"

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Take note that pytest ends before it is through; the record says so."""
        self._interrupted = True
        if self._session is None:
            return
        reason = excinfo.value
        if isinstance(reason, pytest.exit.Exception):
            by_exit = Interruption(f"ended by pytest.exit: {reason}", ExitCode.INTERRUPTED)
            self._session.interrupt(by_exit)
        else:
            self._session.interrupt(reason)

    def pytest_sessionfinish(self) -> None:
        """Write the record, and have told where it is, by the process that has a terminal."""
        self.close()
        # Set by pytest-xdist in each of its processes, and sent to the one that started them.
        output: dict[str, object] | None = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[OUTPUT_KEY] = list(self._notes)

    def pytest_unconfigure(self) -> None:
        """Write the record if pytest has failed before it could end its session."""
        self.close()

    def close(self) -> None:
        """Shrink what broke as the command does, end the lane, and write down what was run."""
        session, self._session = self._session, None
        if session is None:
            return
        if self._directory is not None and not self._interrupted:
            try:
                session.shrink()
            except (HarnessError, OSError, KeyboardInterrupt) as error:
                session.interrupt(error)
                self._notes.append("what broke was not shrunk to its end")
        try:
            result = session.finish()
        except Exception as error:  # noqa: BLE001 - an output may raise anything, and pytest goes on
            said = str(error) or type(error).__name__
            self._notes.append(f"the record, or a page of it, was not written: {said}")
        else:
            if result.record is not None:
                self._notes.append(f"record: {result.directory}")

    def _run(self, scenario: Scenario, schedule: Schedule) -> None:
        result = self._started().run(scenario, schedule)
        self.incarnations += len(result.incarnations)

    def _started(self) -> Session:
        if self._session is None:
            self._session = self._begun(self._out)
        return self._session

    def _begun(self, out: Path | None) -> Session:
        request = SessionRequest(
            (),
            default_root(),
            out=out,
            tier=self.tier,
            seed=self.seed,
            groups=self._groups(),
            pins=self.pins,
            scenarios_from=os.path.relpath(self._folder),
        )
        quiet = Surroundings(Console(file=io.StringIO()), lambda _line: None, os.environ)
        handler = NOBODY if out is None else Outputs(_OUTPUTS, quiet)
        try:
            session = Session(request, handler).__enter__()
        except UsageError as error:
            if out is None:
                raise
            self._notes.append(f"no record is written: {error}")
            return self._begun(None)
        self._directory = session.directory
        return session

    def _groups(self) -> dict[str, frozenset[str]]:
        """Return the groups of scenarios; none unless all of the folder is collected.

        Of a part of it nobody can say who else belongs to a group.
        """
        files = {file for file in self._folder.rglob("*.py") if file.name not in _NO_SCENARIOS}
        if not files <= self._files:
            return {}
        return groups({name: scenario for name, (scenario, _) in self._known.items()})


_KEY = pytest.StashKey[ProcessSession]()
