"""What an item says of an experiment that did not come out as its scenario is pinned."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from harness.moments.catalogue import scan
from harness.report.escaping import block, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.result import ExperimentResult
    from harness.moments.catalogue import Catalogue
    from harness.scenario import Scenario

_SHOWN = 10
"""How many incarnations and how many facts are told; the page has all."""


def story(
    result: ExperimentResult, scenario: Scenario, file: Path, page: Path | None = None
) -> str:
    """Tell of an experiment: what each incarnation came to, what broke, and how to run it again.

    Args:
        result: The experiment.
        scenario: Its scenario.
        file: The file of the scenario.
        page: Its page, if there is to be one.
    """
    source = Path(os.path.relpath(file))
    again = (
        f"crash-harness run --scenarios {shlex.quote(str(source))} {shlex.quote(result.scenario)} "
        f"--seed {result.seed} --at {shlex.quote(str(result.schedule))}"
    )
    facts = [f"{violation.oracle}: {violation.message}" for violation in result.violations]
    lines = [
        f"{result.verdict}: {result.experiment_id}",
        *_bounded([*_lives(result, scan(scenario.points))]),
        *_bounded(facts),
    ]
    note = block(result.note) if result.note else []
    pages = [f"page: {page}"] if page is not None else []
    return "\n".join([*map(plain, lines), *note, plain(again), *map(plain, pages)])


def _lives(result: ExperimentResult, catalogue: Catalogue) -> Iterator[str]:
    struck = {fired.incarnation: fired.moment for fired in result.fired}
    for life in result.incarnations:
        text = f"incarnation {life.number}: {life.death}"
        moment = struck.get(life.number)
        if moment is not None:
            declared = moment.label in catalogue
            source = f" ({catalogue[moment.label].source})" if declared else ""
            text += f" at {moment}{source}"
        passed = [hit.label for hit in life.hits if not hit.stop]
        yield f"{text}, after {passed[-1]}" if passed else text


def _bounded(lines: list[str]) -> list[str]:
    more = len(lines) - _SHOWN
    return [*lines[:_SHOWN], f"... and {more} more"] if more > 0 else lines
