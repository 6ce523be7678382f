"""The command ``crash-harness``."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from harness import __version__
from harness.catalogue import scan
from harness.errors import HarnessError, UnknownNameError, UsageError
from harness.explore.executor import Executor
from harness.explore.matrix import check_schedule, run_matrix
from harness.explore.tiers import TIERS
from harness.outcome import ExitCode, exit_code
from harness.record import RunFacts, new_run_dir, write_record
from harness.registry import DEFAULT, groups, judged_by, load, select
from harness.render.progress import ProgressBar
from harness.render.summary import print_summary
from harness.reproduce import read_failure, run_again
from harness.schedule import Schedule, parse
from harness.workspace import default_root

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.scenario import Scenario

LOG_WIDTH = 120
"""Width of a line when nobody's terminal says otherwise, in columns."""


class _Commands(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            raise UnknownNameError("command", args[0], self.commands)
        return super().resolve_command(ctx, args)


def _scenarios_option(command: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--scenarios",
        "source",
        default=DEFAULT,
        metavar="PATH",
        help="Folder or file with the scenarios (default: ./scenarios).",
    )(command)


def _json_option(command: Callable[..., None]) -> Callable[..., None]:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


_root_option = click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=None,
    help="Directory for the workspaces (default: memory if there is room, else the temp folder).",
)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="crash-harness")
def commands() -> None:
    """Strike a worker at labelled moments, restart it, and check from outside what must hold.

    Exit codes: 0 all as pinned, 1 an oracle broke or a pin no longer matches, 2 usage,
    3 inconclusive, 4 the harness itself failed.
    """


@commands.command()
@click.argument("names", metavar="[SCENARIO]...", nargs=-1)
@click.option("--tier", default="smoke", metavar="TIER", help="smoke, full or deep.")
@click.option("--at", "at", metavar="SCHEDULE", help="Run this schedule alone, not a tier.")
@click.option("--oracle", "oracles", multiple=True, help="Judge by this oracle alone; repeatable.")
@click.option("--seed", default=0, show_default=True, help="Source of everything random.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=None,
    help="How many experiments run at once (default: one per core).",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reports/runs"),
    show_default=True,
    help="Directory of all records; the run gets a folder in it.",
)
@_root_option
@_scenarios_option
def run(  # noqa: PLR0917 - one parameter per option
    names: tuple[str, ...],
    tier: str,
    at: str | None,
    oracles: tuple[str, ...],
    seed: int,
    workers: int | None,
    out: Path,
    root: Path | None,
    source: str,
) -> None:
    """Run scenarios: all of them, or those that are named."""
    if tier not in TIERS:
        raise UnknownNameError("tier", tier, TIERS)
    known = load(source)
    scenarios = judged_by(select(known, names), oracles)
    schedule = _schedule(at, scenarios)
    lanes = workers or len(os.sched_getaffinity(0))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = LOG_WIDTH
    started = datetime.now(UTC)
    directory = new_run_dir(out, started)
    keep = (directory / "failures").resolve()
    with Executor(lanes, root or default_root(), keep) as executor, ProgressBar(console) as show:
        outcomes = run_matrix(
            scenarios,
            executor,
            show,
            tier=tier,
            at=schedule,
            seed=seed,
            lanes=lanes,
            groups=groups(known),
        )
    seconds = (datetime.now(UTC) - started).total_seconds()
    facts = RunFacts("" if schedule else tier, seed, lanes, started, seconds, source)
    print_summary(console, write_record(directory, outcomes, facts), directory)
    raise SystemExit(exit_code(outcomes))


def _schedule(text: str | None, scenarios: Sequence[Scenario]) -> Schedule | None:
    if text is None:
        return None
    schedule = parse(text)
    check_schedule(schedule, scenarios)
    return schedule


@commands.command()
@click.argument("packages", metavar="[PACKAGE]...", nargs=-1)
@_scenarios_option
@_json_option
def points(packages: tuple[str, ...], source: str, as_json: bool) -> None:
    """List every declared crash point: of packages, or of the scenarios' workers."""
    sys.path.insert(0, str(Path.cwd()))
    names = packages or {name for s in load(source).values() for name in s.points}
    found = [
        {"label": p.label, "file": p.file, "line": p.line, "context": list(p.context)}
        for p in scan(names)
    ]
    _show(found, as_json, lambda p: f"{p['label']:32} {p['file']}:{p['line']}")


@commands.command()
@_scenarios_option
@_json_option
def scenarios(source: str, as_json: bool) -> None:
    """List the scenarios."""
    found = [
        {"name": s.name, "pin": str(s.pin), "oracles": [oracle.name for oracle in s.oracles]}
        for s in load(source).values()
    ]
    _show(found, as_json, lambda s: f"{s['name']:32} {s['pin']}")


@commands.command()
@_scenarios_option
@_json_option
def oracles(source: str, as_json: bool) -> None:
    """List the oracles that the scenarios use."""
    promises: dict[str, str] = {}
    used: dict[str, list[str]] = {}
    for scenario in load(source).values():
        for oracle in scenario.oracles:
            promises[oracle.name] = oracle.promise
            used.setdefault(oracle.name, []).append(scenario.name)
    found = [
        {"name": name, "promise": promises[name], "scenarios": used[name]}
        for name in sorted(promises)
    ]
    _show(found, as_json, lambda o: f"{o['name']:32} {o['promise']}")


@commands.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--times", type=click.IntRange(min=1), default=1, help="Run it so often.")
@click.option(
    "--scenarios", "source", default=None, metavar="PATH", help="Where to find the scenario now."
)
@_root_option
def repro(path: Path, times: int, source: str | None, root: Path | None) -> None:
    """Run a recorded failure again; PATH is its folder.

    Exit codes: 1 still broken, 0 holds now, 3 did not reproduce.
    """
    failure = read_failure(path)
    (scenario,) = select(load(source or failure.scenarios_from), [failure.scenario])
    check_schedule(failure.schedule, [scenario])
    with Executor(1, root or default_root()) as executor:
        outcome, results = run_again(failure, scenario, executor, times)
    same = sum(result.fingerprint == failure.fingerprint for result in results[1:])
    click.echo(f"{outcome}: {same} of {times} runs gave fingerprint {failure.fingerprint}")
    click.echo(f"  {failure.scenario}: {failure.schedule or 'control'}")
    for result in results if results[0].verdict != "held" else results[1:2]:
        for violation in result.violations:
            click.echo(f"  {violation.oracle}: {violation.message}")
        if result.note:
            click.echo(f"  {result.verdict}: {result.note}")
    raise SystemExit(outcome.exit_code)


def _show(
    found: Sequence[Mapping[str, object]],
    as_json: bool,
    line: Callable[[Mapping[str, object]], str],
) -> None:
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    for item in found:
        click.echo(line(item))


def main() -> None:
    """Run the command; every error of ours becomes a message and an exit code."""
    try:
        commands(standalone_mode=False)
    except click.UsageError as error:
        error.show()
        raise SystemExit(ExitCode.USAGE) from None
    except (click.Abort, KeyboardInterrupt):
        sys.stderr.write("crash-harness: interrupted; no record was written\n")
        raise SystemExit(130) from None
    except UsageError as error:
        sys.stderr.write(f"crash-harness: {error}\n")
        raise SystemExit(ExitCode.USAGE) from None
    except HarnessError as error:
        sys.stderr.write(f"crash-harness: the harness failed: {error}\n")
        raise SystemExit(ExitCode.HARNESS) from None
