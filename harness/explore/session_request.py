"""What a session is asked, and what it comes to, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.record.pins import NO_PINS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from harness.model.schedule import Schedule
    from harness.record.journal import Journal
    from harness.record.journal_format import CommandRow
    from harness.record.outcome import ExitCode, ScenarioOutcome
    from harness.record.pins import Pins
    from harness.record.run_schema import RunRecord
    from harness.scenario import Scenario


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """What a session is asked to do.

    Attributes:
        scenarios: What to run.
        root: Directory for the workspaces.
        out: Directory of all records, in which the run gets a folder; None to write nothing down
            and keep nothing of what broke.
        tier: Name of the tier.
        at: By the name of a scenario: the schedule to run in place of the tier.
        seed: Source of everything random.
        jobs: How many experiments run at once.
        groups: Names of all scenarios of each group (`Scenario.together`), also of those that are
            not run.
        pins: Failures that are known.
        scenarios_from: Where the scenarios were loaded from, as the user named it.
        command: What was said on the command line, for the journal; None for a run that the command
            did not begin, and cannot go on with.
        resumed: The journal of a run that was cut short, to go on with it in its folder.
    """

    scenarios: tuple[Scenario, ...]
    root: Path
    out: Path | None = None
    tier: str = "smoke"
    at: Mapping[str, Schedule] = field(default_factory=dict)
    seed: int = 0
    jobs: int = 1
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    pins: Pins = NO_PINS
    scenarios_from: str = ""
    command: CommandRow | None = None
    resumed: Journal | None = None


@dataclass(frozen=True, slots=True)
class SessionResult:
    """What a session came to.

    Attributes:
        outcomes: One for each scenario.
        exit_code: What the command returns.
        directory: Folder of the run, if it was written down.
        record: What was written down; None when nothing was, or no experiment had finished.
        fault: The error of the harness, if it failed.
    """

    outcomes: tuple[ScenarioOutcome, ...]
    exit_code: ExitCode
    directory: Path | None
    record: RunRecord | None
    fault: Exception | None = None
