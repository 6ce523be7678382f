"""Test items: an experiment each, and for a scenario its pin and its coverage."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import shlex
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import harness
from harness.explore.scenario_files import scenarios_in
from harness.explore.session import Session, SessionRequest
from harness.images.workspace import default_root
from harness.model.errors import HarnessError, UsageError
from harness.model.result import Verdict
from harness.model.schedule import parse
from harness.pytest_plugin.settings import FOLDER_INI
from harness.record.pins import FILE_NAME, pins_in
from harness.report.escaping import block, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harness.model.result import ExperimentResult
    from harness.scenario import Scenario


class ExperimentFailedError(AssertionError):
    """An experiment did not come out as its scenario is pinned."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a scenario and a tier expand to.

    Attributes:
        schedules: Text of every schedule, the control leg first.
        caught: For a scenario pinned broken: the first schedule that its oracle caught, or empty.
        open_ends: Why not everything can be said, for example points that are never reached.
    """

    schedules: tuple[str, ...]
    caught: str
    open_ends: tuple[str, ...]


class HarnessSession:
    """The one lane of this pytest process, and the plans.

    Args:
        config: Pytest's configuration.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.tier = str(config.getoption("--crash-tier"))
        self.seed = int(config.getoption("--crash-seed"))
        self.pins = pins_in(config.rootpath)
        self._folder = config.rootpath / str(config.getini(FOLDER_INI))
        self._cache = config.cache.mkdir("crash-harness")
        self._running: Session | None = None

    @classmethod
    def of(cls, config: pytest.Config) -> HarnessSession:
        """Return the session of a pytest process; the first call makes it."""
        session = getattr(config, "_crash_harness", None)
        if not isinstance(session, HarnessSession):
            session = cls(config)
            config._crash_harness = session  # type: ignore[attr-defined]
        return session

    def plan(self, scenario: Scenario) -> Plan:
        """Work out what a scenario expands to.

        That takes a run of the tier, so the plan is kept in pytest's cache for as long as no file
        of the harness, the scenarios or the worker changes. Of several processes, as pytest-xdist
        starts them, one works it out and the others wait for it.
        """
        sources = (harness.__name__, *scenario.points)
        key = _digest([self._folder, *_folders(sources)], scenario.name, self.tier, self.seed)
        file = self._cache / f"{key}.json"
        with _locked(self._cache / "lock"):
            if not file.exists():
                plan = self._work_out(scenario)
                file.write_text(json.dumps(asdict(plan)), encoding="utf-8")
                return plan
        kept = json.loads(file.read_text(encoding="utf-8"))
        return Plan(tuple(kept["schedules"]), kept["caught"], tuple(kept["open_ends"]))

    def run(self, scenario: Scenario, schedule: str) -> ExperimentResult:
        """Run one experiment on this process's lane."""
        return self._session().run(scenario, parse(schedule))

    def close(self) -> None:
        """End the lane."""
        if self._running is not None:
            self._running.__exit__()
            self._running = None

    def _session(self) -> Session:
        if self._running is None:
            request = SessionRequest(
                (), default_root(), tier=self.tier, seed=self.seed, pins=self.pins
            )
            self._running = Session(request).__enter__()
        return self._running

    def _work_out(self, scenario: Scenario) -> Plan:
        session = self._session()
        session.explore([scenario])
        (outcome,) = (each for each in session.outcomes if each.scenario is scenario)
        oracle = scenario.pin.oracle
        caught = [str(r.schedule) for r in outcome.results if oracle in r.oracles]
        return Plan(
            tuple(str(result.schedule) for result in outcome.results),
            caught[0] if oracle and caught else "",
            tuple(outcome.inconclusive()),
        )


class ScenarioFile(pytest.File):
    """A file of the scenario folder."""

    def collect(self) -> Iterable[pytest.Item]:
        """Give the items of every scenario that the file itself defines."""
        session = HarnessSession.of(self.config)
        try:
            for scenario in scenarios_in(self.path):
                yield from self._items(session, scenario)
        except UsageError as error:
            raise self.CollectError(str(error)) from None

    def _items(self, session: HarnessSession, scenario: Scenario) -> Iterator[pytest.Item]:
        plan = session.plan(scenario)
        for schedule in plan.schedules:
            name = f"{scenario.name}[{schedule or 'control'}]"
            yield ExperimentItem.from_parent(self, name=name, scenario=scenario, schedule=schedule)
        yield SummaryItem.from_parent(
            self, name=f"{scenario.name}[{scenario.pin}]", scenario=scenario, plan=plan
        )


class _ScenarioItem(pytest.Item):
    # Pytest passes constructor arguments through `from_parent` untyped.
    def __init__(self, *, scenario: Scenario, **arguments: Any) -> None:  # noqa: ANN401
        super().__init__(**arguments)
        self.scenario = scenario

    def reportinfo(self) -> tuple[Path, None, str]:
        """Say where the item is."""
        return self.path, None, self.name

    def repr_failure(  # type: ignore[override]
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> object:
        """Show our own errors as their message."""
        if isinstance(excinfo.value, (ExperimentFailedError, HarnessError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo)


class ExperimentItem(_ScenarioItem):
    """One experiment: it must hold, or break if its scenario is pinned broken."""

    def __init__(self, *, schedule: str, **arguments: Any) -> None:  # noqa: ANN401
        super().__init__(**arguments)
        self.schedule = schedule

    def runtest(self) -> None:
        """Run it."""
        session = HarnessSession.of(self.config)
        result = session.run(self.scenario, self.schedule)
        allowed = {Verdict.HELD}
        if self.scenario.pin.outcome == "broken" and self.schedule:
            allowed.add(Verdict.BROKEN)
        if result.verdict not in allowed:
            if session.pins.know(result):
                pytest.xfail(f"pinned in {FILE_NAME}")
            raise ExperimentFailedError(describe(result, self.path))
        oracles = [oracle.name for oracle in self.scenario.oracles]
        for pin in session.pins.fixed([result], oracles):
            raise ExperimentFailedError(f"pinned in {FILE_NAME} and no longer there, unpin: {pin}")


class SummaryItem(_ScenarioItem):
    """What a scenario's experiments must come to together: its pin, and every point reached."""

    def __init__(self, *, plan: Plan, **arguments: Any) -> None:  # noqa: ANN401
        super().__init__(**arguments)
        self.plan = plan

    def runtest(self) -> None:
        """Look at the plan, and see the known-bad worker caught once more."""
        if self.plan.open_ends:
            raise ExperimentFailedError("\n".join(self.plan.open_ends))
        oracle = self.scenario.pin.oracle
        if not oracle:
            return
        if not self.plan.caught:
            raise ExperimentFailedError(f"pinned broken by {oracle}, and no schedule is")
        result = HarnessSession.of(self.config).run(self.scenario, self.plan.caught)
        if oracle not in result.oracles:
            told = describe(result, self.path)
            raise ExperimentFailedError(f"{oracle} did not catch it\n{told}")


def describe(result: ExperimentResult, file: Path) -> str:
    """Say what an experiment of a scenario file came to and how to run it again."""
    source = Path(os.path.relpath(file))
    again = (
        f"crash-harness run --scenarios {shlex.quote(str(source))} {result.scenario} "
        f"--seed {result.seed} --at {shlex.quote(str(result.schedule))}"
    )
    facts = [f"{violation.oracle}: {violation.message}" for violation in result.violations]
    lines = [f"{result.verdict}: {result.experiment_id}", *facts]
    note = block(result.note) if result.note else []
    return "\n".join([*map(plain, lines), *note, plain(again)])


def _folders(packages: Iterable[str]) -> Iterator[Path]:
    for name in packages:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin:
            yield Path(spec.origin).parent


def _digest(folders: list[Path], *about: object) -> str:
    summary = hashlib.sha256(repr(about).encode())
    for folder in folders:
        for file in sorted(folder.rglob("*.py")):
            summary.update(str(file).encode() + file.read_bytes())
    return summary.hexdigest()[:32]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
