"""Test items: a strike each, and for a scenario its control leg, its pin and its coverage.

They are collected from the points that a worker declares, so collecting starts no process.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from harness.explore.scenario_files import scenarios_in
from harness.model.errors import HarnessError, UsageError
from harness.model.result import Verdict
from harness.moments.catalogue import scan
from harness.pytest_plugin.process_session import ProcessSession
from harness.pytest_plugin.story import story
from harness.record.pins import FILE_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from harness.model.result import ExperimentResult
    from harness.scenario import Scenario


_SHOWN = 10
"""How many experiments an item tells of that have no item of their own."""


class ExperimentFailedError(AssertionError):
    """An experiment did not come out as its scenario is pinned."""


class ScenarioFile(pytest.File):
    """A file of the scenario folder."""

    def collect(self) -> Iterable[pytest.Item]:
        """Give the items of every scenario that the file itself defines.

        Raises:
            CollectError: The file is not one of scenarios, or names something that is not known.
        """
        try:
            session = ProcessSession.of(self.config)
            session.collect(self.path)
            # One that is also in a list of the file is given twice.
            for scenario in {id(each): each for each in scenarios_in(self.path)}.values():
                session.join(scenario, self.path)
                yield from self._items(session.tier, scenario)
        except UsageError as error:
            raise self.CollectError(str(error)) from None

    def _items(self, tier: str, scenario: Scenario) -> Iterator[pytest.Item]:
        yield ControlItem.from_parent(self, name=_name(scenario, "control"), scenario=scenario)
        declared = scan(scenario.points)
        labels = declared.labels
        if scenario.strike:
            labels = tuple(declared[label].label for label in scenario.strike)
        for label in labels:
            yield StrikeItem.from_parent(
                self, name=_name(scenario, f"{label}#1=kill"), scenario=scenario, label=label
            )
        if tier != "smoke" and scenario.pin.outcome == "holds":
            yield TierItem.from_parent(self, name=_name(scenario, tier), scenario=scenario)
        yield SummaryItem.from_parent(
            self, name=_name(scenario, str(scenario.pin)), scenario=scenario
        )


class _ScenarioItem(pytest.Item):
    # Pytest passes constructor arguments through `from_parent` untyped.
    def __init__(self, *, scenario: Scenario, **arguments: Any) -> None:  # noqa: ANN401
        # Given as text, it is what pytest reads in its cache; since version 9.2 an id that pytest
        # makes of the name itself is not equal to that, and ``--lf`` selects nothing by it.
        node_id = f"{arguments['parent'].nodeid}::{arguments['name']}"
        super().__init__(nodeid=node_id, **arguments)
        self.scenario = scenario
        self._collected_in = os.getpid()

    @property
    def session_of_process(self) -> ProcessSession:
        """What this process has run.

        Raises:
            UsageError: It is not the process that has collected the item.
        """
        if os.getpid() != self._collected_in:
            raise UsageError(
                "the items of a scenario share their lanes and their record, and this one runs in "
                "a fork of its own (pytest --forked); run the folder of scenarios without that: "
                "each incarnation has a process of its own anyhow"
            )
        return ProcessSession.of(self.config)

    def complaint(self, result: ExperimentResult) -> str:
        """Say what is wrong with an experiment; nothing if it is as pinned."""
        session = self.session_of_process
        allowed = {Verdict.HELD}
        if self.scenario.pin.outcome == "broken" and result.schedule.moments:
            allowed.add(Verdict.BROKEN)
        if result.verdict not in allowed and not session.pins.know(result):
            return story(result, self.scenario, self.path, session.page(result))
        oracles = [oracle.name for oracle in self.scenario.judges]
        fixed = session.pins.fixed([result], oracles)
        return "\n".join(f"pinned in {FILE_NAME} and no longer there, unpin: {p}" for p in fixed)

    def require(self, result: ExperimentResult) -> None:
        """See that an experiment came out as its scenario is pinned.

        Raises:
            ExperimentFailedError: It did not.
        """
        if complaint := self.complaint(result):
            raise ExperimentFailedError(complaint)
        if self.scenario.pin.outcome == "holds" and self.session_of_process.pins.know(result):
            pytest.xfail(f"pinned in {FILE_NAME}")

    def complaints_of_the_rest(self, results: Iterable[ExperimentResult]) -> list[str]:
        """Say what is wrong with experiments of which no item that was selected tells."""
        waiting = {item.name for item in self.session.items if item.path == self.path}
        found: list[str] = []
        for result in results:
            moments = result.schedule.moments
            name = _name(self.scenario, f"{moments[-1].label}#1=kill" if moments else "control")
            if name in waiting:
                waiting.remove(name)  # a strike's item tells of the first at its point
            elif complaint := self.complaint(result):
                found.append(complaint)
        more = len(found) - _SHOWN
        return [*found[:_SHOWN], f"... and {more} more; the record has all"] if more > 0 else found

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
        """Run it, and tell of every experiment that is not as pinned and has no item."""
        outcome = self.session_of_process.finished(self.scenario)
        if bad := self.complaints_of_the_rest(outcome.results):
            raise ExperimentFailedError("\n\n".join(bad))


class SummaryItem(_ScenarioItem):
    """What a scenario's experiments must come to together: its pin, and every point reached."""

    def runtest(self) -> None:
        """Run what is left of the tier, and look at all of it.

        What a point that nobody has declared brought to light is told here, as it has no item; and
        what broke at a point whose item was not selected.
        """
        outcome = self.session_of_process.finished(self.scenario)
        bad = list(outcome.inconclusive())
        if oracle := self.scenario.pin.oracle:
            if not any(oracle in result.oracles for result in outcome.results):
                bad.append(f"pinned broken by {oracle}, and no schedule is")
        elif not any(
            isinstance(item, TierItem) and item.scenario is self.scenario
            for item in self.session.items
        ):
            judged = (Verdict.HELD, Verdict.BROKEN)  # any other is among the inconclusive
            bad += self.complaints_of_the_rest(
                result for result in outcome.results if result.verdict in judged
            )
        if bad:
            raise ExperimentFailedError("\n\n".join(bad))


def _name(scenario: Scenario, what: str) -> str:
    return f"{scenario.name}[{what}]"
