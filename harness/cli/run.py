"""The command ``crash-harness``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource
from rich.console import Console

from harness import __version__
from harness.cli.entry import run_to_its_end
from harness.cli.failures import gallery, recheck, report, repro, schema
from harness.cli.options import report_option, root_option, scenarios_option, seed_option
from harness.cli.resume import LATEST, check_scenarios, resumed_options, unfinished_run
from harness.cli.run_options import RunOptions
from harness.cli.seed_ranges import parse_seeds
from harness.explore.scenario_files import groups, judged_by, load, select
from harness.explore.session import run_session
from harness.explore.session_request import SessionRequest
from harness.explore.several_seeds import run_seeds
from harness.explore.stop_signals import StopSignals
from harness.images.root import default_root
from harness.images.run_folder import RunFolder
from harness.model.errors import UnknownNameError, UsageError
from harness.model.schedule import parse
from harness.moments.catalogue import scan
from harness.record.interruption import exit_code_of_runs
from harness.record.journal import Journal
from harness.record.outcome import ExitCode
from harness.record.pins import FILE_NAME, NO_PINS, read_pins
from harness.report.output import Surroundings
from harness.report.outputs import OF_A_RUN, SUMMARY, Outputs, chosen
from harness.report.seeds_summary import print_seed, print_seeds
from harness.report.summary import print_summary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.explore.session_request import SessionResult

MOST_JOBS = max(16, 4 * (os.cpu_count() or 1))
"""More experiments than this at once only take memory: each has two processes."""

LOG_WIDTH = 120
"""Width of a line when nobody's terminal says otherwise, in columns."""


class _Commands(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            raise UnknownNameError("command", args[0], self.commands)
        return super().resolve_command(ctx, args)


def _json_option(command: Callable[..., None]) -> Callable[..., None]:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="crash-harness")
def commands() -> None:
    """Strike a worker at labelled moments, restart it, and check from outside what must hold.

    Exit codes: 0 all as pinned, 1 an oracle broke or a pin no longer matches, 2 usage,
    3 inconclusive, 4 the harness itself failed, 130 interrupted by SIGINT, 143 by SIGTERM.
    """


@commands.command()
@click.argument("names", metavar="[SCENARIO]...", nargs=-1)
@click.option("--tier", default="smoke", metavar="TIER", help="smoke, full or deep.")
@click.option("--at", "at", metavar="SCHEDULE", help="Run this schedule alone, not a tier.")
@click.option("--oracle", "oracles", multiple=True, help="Judge by this oracle alone; repeatable.")
@seed_option
@click.option(
    "--seeds",
    "seed_list",
    metavar="LIST",
    help="Run once for each of several seeds, for example 1-10 or 0,3,7-9; each has its record.",
)
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(1, MOST_JOBS),
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
@click.option(
    "--pins",
    "pins_file",
    type=click.Path(path_type=Path),
    default=None,
    help=f"File with known failures (default: {FILE_NAME}, if there is one).",
)
@click.option(
    "--resume",
    is_flag=False,
    flag_value=LATEST,
    default=None,
    metavar="[RUN]",
    help="Go on with a run that was cut short: a folder, or the latest in --out.",
)
@report_option
@root_option
@scenarios_option
def run(  # noqa: PLR0917 - one parameter per option
    names: tuple[str, ...],
    tier: str,
    at: str | None,
    oracles: tuple[str, ...],
    seed: int,
    seed_list: str | None,
    jobs: int | None,
    out: Path,
    pins_file: Path | None,
    resume: str | None,
    reports: str | None,
    root: Path | None,
    source: str,
) -> None:
    """Run scenarios: all of them, or those that are named."""
    usual = Path(FILE_NAME)
    given = RunOptions(
        names,
        tier,
        at,
        oracles,
        seed,
        seeds=None if seed_list is None else _seeds(seed_list),
        before=(),
        jobs=jobs or len(os.sched_getaffinity(0)),
        pins=pins_file or (usual if usual.exists() else None),
        report=reports,
        root=root,
        source=source,
    )
    if resume is None:
        _run(given, out)
    else:
        journal = Journal.go_on(unfinished_run(out, resume))
        try:
            _run(resumed_options(journal, given, _said()), journal.directory.parent, journal)
        finally:
            journal.close(over=False)


def _run(options: RunOptions, out: Path, journal: Journal | None = None) -> None:
    """Run what was asked for, and exit.

    Args:
        options: What was asked for.
        out: Directory of all records.
        journal: The journal of the run to go on with, if it is not a new one.
    """
    wanted = chosen(options.report, os.environ)
    pins = NO_PINS if options.pins is None else read_pins(options.pins)
    known = load(options.source)
    scenarios = judged_by(select(known, options.names), options.oracles)
    catalogues = {each.name: scan(each.points) for each in scenarios}
    labels = (label for catalogue in catalogues.values() for label in catalogue.labels)
    schedule = None if options.at is None else parse(options.at, labels)
    pins.check(catalogues)
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = LOG_WIDTH
    if journal is not None:
        check_scenarios(journal, catalogues)
        finished = len(journal.content.finished)
        click.echo(f"going on with {journal.directory}: {finished} experiments had finished")
    request = SessionRequest(
        scenarios,
        root=options.root or default_root(),
        out=out,
        tier=options.tier,
        at={} if schedule is None else {scenario.name: schedule for scenario in scenarios},
        seed=options.seed,
        jobs=options.jobs,
        groups=groups(known),
        pins=pins,
        scenarios_from=options.source,
        command=options.row(scenarios),
        resumed=journal,
    )
    surroundings = Surroundings(console, click.echo, os.environ)
    if options.seeds is None:
        _run_once(request, wanted, surroundings)
    else:
        _run_each(request, options, wanted, surroundings)


def _run_once(request: SessionRequest, wanted: Sequence[str], surroundings: Surroundings) -> None:
    outputs = Outputs((*OF_A_RUN, *wanted), surroundings)
    with StopSignals(ends_program=True) as stop:
        try:
            result = run_session(request, outputs, stop)
        except KeyboardInterrupt:
            raise _cut_off(outputs) from None
    _require_sound(result)
    raise SystemExit(result.exit_code)


def _run_each(
    request: SessionRequest,
    options: RunOptions,
    wanted: Sequence[str],
    surroundings: Surroundings,
) -> None:
    """Run under each seed; the summary is shown of those that are not as pinned."""
    names = {*OF_A_RUN, *wanted} - {SUMMARY}
    console = surroundings.console
    codes = {seed: ExitCode(code) for seed, code in options.before}
    seeds = options.seeds or ()
    told: list[Outputs] = []

    def outputs() -> Outputs:
        told.append(Outputs(names, surroundings))
        return told[-1]

    with StopSignals(ends_program=True) as stop:
        try:
            left = [seed for seed in seeds if seed not in codes]
            for seed, result in run_seeds(request, left, outputs, stop):
                codes[seed] = result.exit_code
                if result.record is not None and result.directory is not None:
                    as_pinned = result.exit_code is ExitCode.AS_PINNED
                    show = print_seed if as_pinned and SUMMARY not in wanted else print_summary
                    show(console, result.record, result.directory)
        except KeyboardInterrupt:
            raise _cut_off(told[-1]) from None
    print_seeds(console, seeds, codes)
    _require_sound(result)
    raise SystemExit(exit_code_of_runs(tuple(codes.values())))


def _cut_off(outputs: Outputs) -> SystemExit:
    """Say what is there of a run whose record was not waited for."""
    click.echo("crash-harness: interrupted; no record was written", err=True)
    _say_how_to_go_on(outputs.directory)
    return SystemExit(ExitCode.INTERRUPTED)


def _say_how_to_go_on(directory: Path | None) -> None:
    if directory is not None and RunFolder(directory).journal.exists():
        click.echo(f"crash-harness run --resume {directory} goes on with it", err=True)


def _said() -> frozenset[str]:
    """Return the parameters of the command that were given."""
    context = click.get_current_context()
    return frozenset(
        name
        for name in context.params
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT
    )


def _require_sound(result: SessionResult) -> None:
    if result.fault is not None:
        _say_how_to_go_on(result.directory)
        raise result.fault
    if result.record is None:
        click.echo("crash-harness: interrupted; no record was written", err=True)
    _say_how_to_go_on(result.directory)


def _seeds(seed_list: str) -> tuple[int, ...]:
    given = click.get_current_context().get_parameter_source("seed")
    if given is not ParameterSource.DEFAULT:
        raise UsageError("--seed and --seeds are both given; give one of them")
    return parse_seeds(seed_list)


@commands.command()
@click.argument("packages", metavar="[PACKAGE]...", nargs=-1)
@scenarios_option
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
@scenarios_option
@_json_option
def scenarios(source: str, as_json: bool) -> None:
    """List the scenarios."""
    found = [
        {"name": s.name, "pin": str(s.pin), "oracles": [oracle.name for oracle in s.judges]}
        for s in load(source).values()
    ]
    _show(found, as_json, lambda s: f"{s['name']:32} {s['pin']}")


@commands.command()
@scenarios_option
@_json_option
def oracles(source: str, as_json: bool) -> None:
    """List the oracles that the scenarios use."""
    promises: dict[str, str] = {}
    used: dict[str, list[str]] = {}
    for scenario in load(source).values():
        for oracle in scenario.judges:
            promises[oracle.name] = oracle.promise
            used.setdefault(oracle.name, []).append(scenario.name)
    found = [
        {"name": name, "promise": promises[name], "scenarios": used[name]}
        for name in sorted(promises)
    ]
    _show(found, as_json, lambda o: f"{o['name']:32} {o['promise']}")


for command in (repro, report, recheck, gallery, schema):
    commands.add_command(command)


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
    """Run the command; see `harness.cli.entry`."""
    run_to_its_end(commands)
