"""Test items: a strike each, and for a scenario its control leg, its pin and its coverage.

They are collected from the points that a worker declares, so collecting starts no process.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.explore.scenario_files import scenarios_in
from harness.explore.tiers import TIERS
from harness.model.errors import HarnessError, UnknownNameError, UsageError
from harness.model.result import Verdict
from harness.moments.catalogue import scan
from harness.pytest_plugin.process_session import ProcessSession
from harness.record.pins import FILE_NAME
from harness.report.escaping import block, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harness.model.result import ExperimentResult
    from harness.scenario import Scenario


class ExperimentFailedError(AssertionError):
    """An experiment did not come out as its scenario is pinned."""


class ScenarioFile(pytest.File):
    """A file of the scenario folder."""

    def collect(self) -> Iterable[pytest.Item]:
        """Give the items of every scenario that the file itself defines.

        Raises:
            CollectError: The file is not one of scenarios, or names something that is not known.
        """
        session = ProcessSession.of(self.config)
        try:
            if session.tier not in TIERS:
                raise UnknownNameError("tier", session.tier, TIERS)
            for scenario in scenarios_in(self.path):
                yield from self._items(session.tier, scenario)
        except UsageError as error:
            raise self.CollectError(str(error)) from None

    def _items(self, tier: str, scenario: Scenario) -> Iterator[pytest.Item]:
        name = scenario.name
        yield ControlItem.from_parent(self, name=f"{name}[control]", scenario=scenario)
        declared = scan(scenario.points)
        labels = declared.labels
        if scenario.strike:
            labels = tuple(declared[label].label for label in scenario.strike)
        for label in labels:
            yield StrikeItem.from_parent(
                self, name=f"{name}[{label}#1=kill]", scenario=scenario, label=label
            )
        if tier != "smoke" and scenario.pin.outcome == "holds":
            yield TierItem.from_parent(self, name=f"{name}[{tier}]", scenario=scenario)
        yield SummaryItem.from_parent(self, name=f"{name}[{scenario.pin}]", scenario=scenario)


class _ScenarioItem(pytest.Item):
    # Pytest passes constructor arguments through `from_parent` untyped.
    def __init__(self, *, scenario: Scenario, **arguments: Any) -> None:  # noqa: ANN401
        super().__init__(**arguments)
        self.scenario = scenario

    @property
    def session_of_process(self) -> ProcessSession:
        """What this process has run."""
        return ProcessSession.of(self.config)

    def require(self, result: ExperimentResult) -> None:
        """See that an experiment came out as its scenario is pinned.

        Raises:
            ExperimentFailedError: It did not.
        """
        pins = self.session_of_process.pins
        allowed = {Verdict.HELD}
        if self.scenario.pin.outcome == "broken" and result.schedule.moments:
            allowed.add(Verdict.BROKEN)
        if result.verdict not in allowed:
            if pins.know(result):
                pytest.xfail(f"pinned in {FILE_NAME}")
            page = self.session_of_process.page(result)
            raise ExperimentFailedError(describe(result, self.path, page))
        oracles = [oracle.name for oracle in self.scenario.judges]
        for pin in pins.fixed([result], oracles):
            raise ExperimentFailedError(f"pinned in {FILE_NAME} and no longer there, unpin: {pin}")

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


class ControlItem(_ScenarioItem):
    """The control leg: without a fault everything holds."""

    def runtest(self) -> None:
        """Run it."""
        self.require(self.session_of_process.control(self.scenario))


class StrikeItem(_ScenarioItem):
    """A strike at the first hit of a point: it must hold, or break if the scenario is pinned so."""

    def __init__(self, *, label: str, **arguments: Any) -> None:  # noqa: ANN401
        super().__init__(**arguments)
        self.label = label

    def runtest(self) -> None:
        """Run it, after the control leg."""
        result = self.session_of_process.strike(self.scenario, self.label)
        if result is not None:
            self.require(result)
            return
        control = self.session_of_process.control(self.scenario)
        if control.verdict is not Verdict.HELD:
            pytest.skip(f"the control leg was {control.verdict}, so nothing was struck")
        pytest.skip("no experiment reaches this point")


class TierItem(_ScenarioItem):
    """The rest of a tier whose experiments depend on what others find."""

    def runtest(self) -> None:
        """Run it, and tell of every experiment that did not hold."""
        outcome = self.session_of_process.finished(self.scenario)
        session = self.session_of_process
        bad = [
            describe(result, self.path, session.page(result))
            for result in outcome.results
            if result.verdict is not Verdict.HELD and not session.pins.know(result)
        ]
        if bad:
            raise ExperimentFailedError("\n\n".join(bad))


class SummaryItem(_ScenarioItem):
    """What a scenario's experiments must come to together: its pin, and every point reached."""

    def runtest(self) -> None:
        """Run what is left of the tier, and look at all of it."""
        outcome = self.session_of_process.finished(self.scenario)
        if open_ends := tuple(outcome.inconclusive()):
            raise ExperimentFailedError("\n".join(open_ends))
        oracle = self.scenario.pin.oracle
        if oracle and not any(oracle in result.oracles for result in outcome.results):
            raise ExperimentFailedError(f"pinned broken by {oracle}, and no schedule is")


def describe(result: ExperimentResult, file: Path, page: Path | None = None) -> str:
    """Say what an experiment came to, how to run it again, and where its page will be.

    Args:
        result: The experiment.
        file: The file of its scenario.
        page: Its page, if there is to be one.
    """
    source = Path(os.path.relpath(file))
    again = (
        f"crash-harness run --scenarios {shlex.quote(str(source))} {result.scenario} "
        f"--seed {result.seed} --at {shlex.quote(str(result.schedule))}"
    )
    facts = [f"{violation.oracle}: {violation.message}" for violation in result.violations]
    lines = [f"{result.verdict}: {result.experiment_id}", *facts]
    note = block(result.note) if result.note else []
    pages = [f"page: {page}"] if page is not None else []
    return "\n".join([*map(plain, [*lines]), *note, plain(again), *map(plain, pages)])
