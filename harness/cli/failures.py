"""Commands about what was recorded: ``repro``, ``report``, ``recheck``, ``gallery``, ``schema``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from harness.cli.options import report_option, root_option, scenarios_option, seed_option
from harness.explore.executor import Executor
from harness.explore.exploration import check_schedule
from harness.explore.scenario_files import DEFAULT, load, select
from harness.gallery.comparison import compare_gallery
from harness.gallery.data import GalleryFolder, read_gallery, with_new_families
from harness.gallery.making import make_gallery, write_gallery, write_pages
from harness.images.root import default_root
from harness.images.run_folder import FailureFolder, RunFolder
from harness.model.errors import UsageError
from harness.model.result import Verdict
from harness.record.failure_schema import FailureRecord, read_failure_record
from harness.record.half_done import half_done
from harness.record.outcome import ExitCode
from harness.record.run_schema import RunRecord, read_run
from harness.record.typed_dicts import json_schemas
from harness.replay.recheck import failures_at, judge_record, recorded_failures
from harness.replay.reproduce import different, named_failure, run_again, scenarios_of
from harness.replay.shell import open_shell
from harness.report.escaping import block, plain
from harness.report.half_done import half_done_lines
from harness.report.output import Surroundings
from harness.report.outputs import OF_A_RECORD, Outputs, chosen

if TYPE_CHECKING:
    from harness.model.result import ExperimentResult
    from harness.record.half_done import HalfDone


@click.command()
@click.argument("what", metavar="PATH|SCENARIO[SCHEDULE]")
@click.option("--times", type=click.IntRange(min=1), default=1, help="Run it so often.")
@click.option("--shell", is_flag=True, help="Open a shell on a copy of the crash image instead.")
@click.option(
    "--scenarios", "source", default=None, metavar="PATH", help="Where to find the scenario now."
)
@seed_option
@root_option
def repro(  # noqa: PLR0917 - one parameter per option
    what: str, times: int, shell: bool, source: str | None, seed: int, root: Path
) -> None:
    """Run a failure again: the folder of a recorded one, or a schedule such as reports print.

    Exit codes: 1 still broken, 0 holds now, 3 flaky, or did not reproduce.
    """
    failure = named_failure(what, source or DEFAULT, seed)
    (scenario,) = select(load(source or failure.scenarios_from), [failure.scenario])
    check_schedule(failure.schedule, scenario)
    if shell:
        path = Path(what)
        if not path.exists():
            raise UsageError("--shell needs the folder of a recorded failure, with its crash image")
        folder = path if path.is_dir() else path.parent
        raise SystemExit(open_shell(failure, scenario, folder, root or default_root()))
    with Executor(1, root or default_root(), seed=failure.seed) as executor:
        outcome, results = run_again(failure, scenario, executor, times)
    wanted = failure.fingerprint or next((r.fingerprint for r in results[1:] if r.fingerprint), "")
    same = sum(bool(wanted) and result.fingerprint == wanted for result in results[1:])
    click.echo(f"{outcome}: {same} of {times} runs gave fingerprint {wanted or '(none)'}")
    click.echo(f"  {failure.scenario}: {plain(str(failure.schedule)) or 'control'}")
    for result in results if results[0].verdict != "held" else different(results[1:]):
        _tell(result)
    raise SystemExit(outcome.exit_code)


def _tell(result: ExperimentResult) -> None:
    for violation in result.violations:
        click.echo(f"  {violation.oracle}: {plain(violation.message)}")
    if result.note:
        first, *rest = block(result.note)
        click.echo(f"  {result.verdict}: {first}")
        for line in rest:
            click.echo(f"    | {line}")


@click.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@report_option
def report(path: Path, reports: str | None) -> None:
    """Render an old record again; PATH is a run's directory or a failure's folder.

    Of a run that is not over it shows how far it is. Exit codes: 0 rendered, 3 the run is not over,
    or was interrupted.
    """
    names = chosen(reports, os.environ)
    unfinished = half_done(path)
    folder = path if path.is_dir() else path.parent
    run = RunFolder(folder)
    if unfinished is not None and not (
        run.record.exists() or FailureFolder(folder).record.exists()
    ):
        raise _not_over(unfinished)
    console = Console(highlight=False)
    surroundings = Surroundings(console, click.echo, os.environ)
    Outputs((*OF_A_RECORD, *names), surroundings).render_again(path)
    click.echo(f"rendered {', '.join(names) or 'nothing'}: {path}")
    if not run.record.exists():
        return
    if unfinished is not None:
        raise _not_over(unfinished)
    if why := read_run(folder)["interrupted"]:
        click.echo(f"the run is not whole: it was {plain(why)}")
        raise SystemExit(ExitCode.INCONCLUSIVE)


def _not_over(run: HalfDone) -> SystemExit:
    """Show how far a run is."""
    for line in half_done_lines(run):
        click.echo(line)
    return SystemExit(ExitCode.INCONCLUSIVE)


@click.command()
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--scenarios", "source", default=None, metavar="PATH", help="Where to find the scenario now."
)
def recheck(path: Path, source: str | None) -> None:
    """Judge recorded failures with today's oracles, by their crash images; no worker is run.

    PATH is a failure's folder, or a run's directory for all of its failures. Exit codes: 1 still
    broken by an oracle, 0 all hold by today's oracles, 3 an oracle cannot tell, or the run is not
    over.
    """
    verdicts = set()
    unfinished = None if FailureFolder(path).record.exists() else half_done(path)
    if unfinished is not None and not recorded_failures(path):
        raise _not_over(unfinished)
    for folder in failures_at(path):
        record = read_failure_record(folder)
        where = source or scenarios_of(record)
        (scenario,) = select(load(where), [record["scenario"]])
        verdict, violations, note = judge_record(folder, scenario)
        verdicts.add(verdict)
        before = sorted({violation["oracle"] for violation in record["violations"]})
        now = sorted({violation.oracle for violation in violations})
        click.echo(f"{record['fingerprint']}: {verdict}")
        click.echo(f"  {record['scenario']}: {plain(record['schedule']) or 'control'}")
        click.echo(f"  broken then: {', '.join(map(plain, before))}")
        click.echo(f"  broken now: {', '.join(now) or 'none'}")
        for line in block(note) if note else []:
            click.echo(f"  | {line}")
    if unfinished is not None:
        inconclusive = _not_over(unfinished)
        raise SystemExit(ExitCode.BROKEN) if Verdict.BROKEN in verdicts else inconclusive
    if Verdict.BROKEN in verdicts:
        raise SystemExit(ExitCode.BROKEN)
    raise SystemExit(ExitCode.INCONCLUSIVE if Verdict.UNKNOWN in verdicts else ExitCode.AS_PINNED)


@click.command()
@click.argument("names", metavar="[SCENARIO]...", nargs=-1)
@click.option(
    "--check",
    is_flag=True,
    help="Compare with the digests and change none of them; exit 1 when a report differs.",
)
@click.option(
    "--gallery",
    "path",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reports/gallery"),
    show_default=True,
    help="Directory of the gallery: its data, its overview and its sample.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for the reports.  [default: pages in the gallery; with --check none]",
)
@root_option
@scenarios_option
def gallery(
    *,
    names: tuple[str, ...],
    check: bool,
    path: Path,
    out: Path | None,
    root: Path | None,
    source: str,
) -> None:
    """Make the gallery: reports of known-bad workers, the same on every machine.

    With the name of a scenario: add it. Without: the families that the gallery has, or every
    scenario that is pinned broken when there is no gallery.
    """
    folder = GalleryFolder(path)
    kept = wanted = read_gallery(folder)
    scenarios = load(source)
    if names or not kept["families"]:
        broken = [s.name for s in select(scenarios, names) if s.pin.outcome == "broken"]
        wanted = with_new_families(kept, broken)
    families = wanted["families"]
    if not families:
        raise UsageError("no scenario here is pinned broken, so there is nothing to show")
    select(scenarios, [family["shows"] for family in families.values()])
    made = make_gallery(wanted, scenarios, source, root or default_root())
    differences = compare_gallery(made, kept, folder) if check else []
    if not check:
        write_gallery(made, folder)
        out = out or folder.pages
    if out:
        write_pages(made, out)
        click.echo(f"{len(families)} reports: {out}")
    if not check:
        click.echo(f"data, overview and sample: {path}")
        return
    for line in differences:
        click.echo(plain(line))
    if differences:
        click.echo(
            "if this is meant, make the gallery anew, look at it and commit it: "
            "crash-harness gallery"
        )
        raise SystemExit(ExitCode.BROKEN)
    click.echo(f"{len(families)} reports are as their digests say: {folder.index}")


@click.command()
def schema() -> None:
    """Print the JSON Schema of the records."""
    click.echo(schema_text(), nl=False)


def schema_text() -> str:
    """Return the JSON Schema of the records, as it is published in ``reports/schema.json``."""
    found = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Records of crash-harness: results.json of a run, failure.json of a failure",
        "oneOf": [{"$ref": "#/$defs/RunRecord"}, {"$ref": "#/$defs/FailureRecord"}],
        "$defs": json_schemas((RunRecord, FailureRecord)),
    }
    return json.dumps(found, indent=1) + "\n"
