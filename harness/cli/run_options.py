"""What was said to ``crash-harness run``, as a value: on the command line, or in a journal."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness import __version__
from harness.model.hash_seed import hash_seed_of_forks
from harness.record.code_digests import digests_of_code

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.record.journal_format import CommandRow
    from harness.scenario import Scenario


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run.

    Attributes:
        names: Scenarios that were named; none for all.
        tier: Name of the tier.
        at: Text of the schedule to run instead of the tier.
        oracles: Oracles to judge by; none for all.
        seed: The seed of one run.
        seeds: The seeds, when several were asked for.
        before: Exit codes of the seeds that have been run.
        jobs: How many experiments run at once.
        pins: The pins file, if there is one.
        report: Names of outputs, as the user gave them.
        root: Directory for the workspaces, if one was given.
        source: Where the scenarios are.
    """

    names: tuple[str, ...]
    tier: str
    at: str | None
    oracles: tuple[str, ...]
    seed: int
    seeds: tuple[int, ...] | None
    before: tuple[tuple[int, int], ...]
    jobs: int
    pins: Path | None
    report: str | None
    root: Path | None
    source: str

    def row(self, scenarios: Iterable[Scenario]) -> CommandRow:
        """Return what a journal says of them, with digests of the code as it is now.

        Args:
            scenarios: The scenarios that are run; they have been imported.
        """
        packages = dict.fromkeys(name for scenario in scenarios for name in scenario.points)
        others = [self.pins] if self.pins is not None else []
        return {
            "scenarios": list(self.names),
            "tier": self.tier,
            "at": self.at,
            "oracles": list(self.oracles),
            "seeds": None if self.seeds is None else list(self.seeds),
            "before": {str(seed): code for seed, code in self.before},
            "jobs": self.jobs,
            "pins": None if self.pins is None else str(self.pins),
            "report": self.report,
            "root": None if self.root is None else str(self.root),
            "scenarios_from": self.source,
            "folder": str(Path.cwd()),
            "version": __version__,
            "python": platform.python_version(),
            "hash_seed": hash_seed_of_forks(0, os.environ),
            "files": digests_of_code(packages, others),
        }


def options_in(row: CommandRow, seed: int) -> RunOptions:
    """Return the options that a journal says.

    Args:
        row: What it says.
        seed: The seed of its run.
    """
    return RunOptions(
        names=tuple(row["scenarios"]),
        tier=row["tier"],
        at=row["at"],
        oracles=tuple(row["oracles"]),
        seed=seed,
        seeds=None if row["seeds"] is None else tuple(row["seeds"]),
        before=tuple((int(before), code) for before, code in row["before"].items()),
        jobs=row["jobs"],
        pins=None if row["pins"] is None else Path(row["pins"]),
        report=row["report"],
        root=None if row["root"] is None else Path(row["root"]),
        source=row["scenarios_from"],
    )
