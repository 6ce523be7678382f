"""How to run a failure again: commands to type, a program, and a test to paste."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from harness.images.run_folder import FailureFolder
from harness.report.output import Output, Surroundings, write_text

if TYPE_CHECKING:
    from pathlib import Path

    from harness.record.failure_schema import FailureRecord
    from harness.report.recorded_run import RecordedRun


class ReproScripts(Output):
    """Writes ``repro.py`` and ``test_repro.py`` for each failure.

    Args:
        _surroundings: Not used.
    """

    def __init__(self, _surroundings: Surroundings) -> None:
        pass

    def close(self, run: RecordedRun | None) -> None:
        """Write those of every failure."""
        if run is not None:
            for folder, failure in run.failures.items():
                self.write_failure(folder, failure)

    def write_failure(self, folder: Path, record: FailureRecord) -> None:
        """Write those of a failure."""
        write_text(FailureFolder(folder).program, program(record))
        write_text(FailureFolder(folder).test, test_to_paste(record))


def commands_to_repeat(record: FailureRecord) -> list[str]:
    """Return the commands, most useful first."""
    experiment = f"{record['scenario']}[{record['schedule'] or 'control'}]"
    options = _options(record)
    lines = [
        f"crash-harness repro {shlex.quote(experiment)}{options}",
        f"crash-harness repro {shlex.quote(experiment)}{options} --times 20",
    ]
    minimal = record["minimal"]["schedule"]
    if minimal != record["schedule"]:
        shorter = f"{record['scenario']}[{minimal or 'control'}]"
        lines.append(f"crash-harness repro {shlex.quote(shorter)}{options}")
    lines.append(f"crash-harness repro FOLDER-OF-{record['fingerprint']} --shell")
    return lines


def _options(record: FailureRecord) -> str:
    options = f" --seed {record['seed']}" if record["seed"] else ""
    if record["scenarios_from"] != "scenarios":
        options += f" --scenarios {shlex.quote(record['scenarios_from'])}"
    return options


_PROGRAM = '''\
"""Run the failure {fingerprint} again. Exit codes: 1 still broken, 0 holds now, 3 neither."""

from pathlib import Path

from harness import load_scenarios, run_schedule

SCENARIOS = {scenarios}
SCENARIO = {scenario}
SCHEDULE = {schedule}
SEED = {seed}
FINGERPRINT = {fingerprint_text}


def main() -> int:
    scenario = load_scenarios(Path(SCENARIOS).expanduser())[SCENARIO]
    result = run_schedule(scenario, SCHEDULE, seed=SEED)
    print(result.verdict, result.fingerprint)
    for violation in result.violations:
        print(f"{{violation.oracle}}: {{violation.message!r}}")
    if result.fingerprint == FINGERPRINT:
        return 1
    return 0 if result.verdict == "held" else 3


if __name__ == "__main__":
    raise SystemExit(main())
'''

_TEST = '''\
"""A test for the failure {fingerprint}: it fails until the failure is fixed."""

from pathlib import Path

from harness import load_scenarios, run_schedule


def test_{name}() -> None:
    scenario = load_scenarios(Path({scenarios}).expanduser())[{scenario}]
    run_schedule(scenario, {schedule}, seed={seed}).raise_if_not_held()
'''


def program(record: FailureRecord) -> str:
    """Return ``repro.py``; it uses the public API alone."""
    return _filled(_PROGRAM, record, record["schedule"])


def test_to_paste(record: FailureRecord) -> str:
    """Return a pytest case, of the shortest schedule."""
    return _filled(_TEST, record, record["minimal"]["schedule"])


def _filled(template: str, record: FailureRecord, schedule: str) -> str:
    """Fill in literals; whatever a text holds, it stays one literal."""
    name = re.sub("[^A-Za-z0-9]", "_", record["scenario"])
    fingerprint = re.sub("[^A-Za-z0-9]", "", record["fingerprint"])
    return template.format(
        fingerprint=fingerprint,
        fingerprint_text=ascii(fingerprint),
        name=f"{name}_{fingerprint}",
        scenarios=ascii(record["scenarios_from"]),
        scenario=ascii(record["scenario"]),
        schedule=ascii(schedule),
        seed=int(record["seed"]),
    )
