"""The summary at the end of a run; plain text where there is no terminal."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from harness.images.run_folder import RunFolder
from harness.report.escaping import block, plain
from harness.report.output import Output, Surroundings

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console, JustifyMethod

    from harness.record.run_schema import ExperimentRow, RunRecord, ScenarioRow
    from harness.report.recorded_run import RecordedRun

_SHOWN = 10
_NOTE_LINES = 10
_NUMBERS = ("held", "broken", "other", "moments", "survived")


class Summary(Output):
    """Prints the summary.

    Args:
        surroundings: Where to print.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        self._console = surroundings.console

    def close(self, run: RecordedRun | None) -> None:
        """Print it."""
        if run is not None:
            print_summary(self._console, run.record, run.directory)


def print_summary(console: Console, record: RunRecord, directory: Path) -> None:
    """Print what a run came to: a table of scenarios, what failed and why, the counts, the record.

    Args:
        console: Where to print.
        record: The content of ``results.json``.
        directory: Where the record is.
    """
    console.print(_table(record))
    for scenario in record["scenarios"]:
        if scenario["mismatch"] or scenario["inconclusive"]:
            _print_scenario(console, record, scenario, directory)
    _print_pins(console, record)
    _print_bounds(console, record)
    _print_outside(console, record)
    totals, timing = record["totals"], record["timing"]
    console.print(
        f"\nmoments: {totals['moments_found']} found, {totals['moments_struck']} struck, "
        f"{totals['moments_survived']} survived"
    )
    console.print(
        f"experiments: {totals['experiments']} in {timing['seconds']:.1f} s "
        f"({timing['experiments_per_s']:.1f} per second), "
        f"{totals['held']} held, {totals['broken']} broken"
    )
    _print_compared(console, record)
    if record["interrupted"]:
        why = escape(plain(record["interrupted"], 1_000))
        unfinished = sum(not scenario["finished"] for scenario in record["scenarios"])
        console.print(
            f"[bold red]The run was {why}[/]; {unfinished} of {totals['scenarios']} scenarios "
            "are not finished",
            soft_wrap=True,
        )
    console.print(f"as pinned: {totals['as_pinned']} of {totals['scenarios']} scenarios")
    console.print(f"record: {directory}", soft_wrap=True, markup=False)
    report = RunFolder(directory).report
    if report.exists():
        console.print(f"report: {report}", soft_wrap=True, markup=False)


def _table(record: RunRecord) -> Table:
    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    for experiment in record["experiments"]:
        verdicts[experiment["scenario"]][experiment["verdict"]] += 1
    moments = Counter(moment["scenario"] for moment in record["moments"])
    survived = Counter(moment["scenario"] for moment in record["moments"] if moment["survived"])
    table = Table(box=None, pad_edge=False)
    for column in ("scenario", "pinned", "held", "broken", "other", "moments", "survived", ""):
        justify: JustifyMethod = "right" if column in _NUMBERS else "left"
        table.add_column(column, justify=justify, no_wrap=column == "scenario")
    for scenario in record["scenarios"]:
        name = scenario["name"]
        counts = verdicts[name]
        held, broken = counts["held"], counts["broken"]
        table.add_row(
            escape(plain(name)),
            escape(plain(scenario["pin"])),
            str(held),
            str(broken),
            str(counts.total() - held - broken),
            str(moments[name]),
            str(survived[name]),
            _state(scenario),
        )
    return table


def _state(scenario: ScenarioRow) -> str:
    if scenario["as_pinned"]:
        return "[green]as pinned[/]"
    if scenario["finished"] or scenario["mismatch"] or scenario["inconclusive"]:
        return "[bold red]NOT as pinned[/]"
    return "[yellow]not finished[/]"


def _print_scenario(
    console: Console, record: RunRecord, scenario: ScenarioRow, directory: Path
) -> None:
    name = scenario["name"]
    why = escape(plain(scenario["mismatch"] or "inconclusive"))
    console.print(f"\n[bold red]{escape(plain(name))}[/]: {why}", soft_wrap=True)
    for reason in scenario["inconclusive"][:_SHOWN]:
        first, *rest = block(reason, lines=20)
        _print(console, f"  {first}")
        for line in rest:
            _print(console, f"    | {line}")
    _print_more(console, len(scenario["inconclusive"]))
    if scenario["pin"] != "holds":
        return
    broken = [
        row
        for row in record["experiments"]
        if row["scenario"] == name and row["verdict"] == "broken" and not row["known"]
    ]
    for experiment in broken[:_SHOWN]:
        _print_failure(console, experiment, directory)
    _print_more(console, len(broken))


def _print_failure(console: Console, experiment: ExperimentRow, directory: Path) -> None:
    _print(console, f"  {plain(experiment['schedule']) or 'control'}")
    for violation in experiment["violations"][:_SHOWN]:
        _print(console, f"    {plain(violation['oracle'])}: {plain(violation['message'])}")
    for line in block(experiment["note"], lines=_NOTE_LINES) if experiment["note"] else ():
        _print(console, f"    | {line}")
    again = RunFolder(directory).failure(plain(experiment["fingerprint"])).path
    _print(console, f"    crash-harness repro {again}")


def _print_pins(console: Console, record: RunRecord) -> None:
    states = Counter(pin["state"] for pin in record["pins"])
    if not states:
        return
    console.print(
        f"\npinned failures: {states['broken']} still broken, {states['fixed']} fixed, "
        f"{states['not_run']} not run"
    )
    fixed = [pin for pin in record["pins"] if pin["state"] == "fixed"]
    for pin in fixed[:_SHOWN]:
        which = f"{plain(pin['scenario'])}[{plain(pin['schedule']) or 'control'}]"
        _print(
            console, f"  fixed, unpin it: {which if pin['scenario'] else plain(pin['fingerprint'])}"
        )
    _print_more(console, len(fixed))


def _print_compared(console: Console, record: RunRecord) -> None:
    """Print how the sample compares that was run with an interpreter per incarnation."""
    samples = [scenario["fork_sample"]["experiments"] for scenario in record["scenarios"]]
    rows = [row for sample in samples for row in sample]
    differ = sum(not row["agrees"] for row in rows)
    looked_at = sum(map(bool, samples))
    if rows:
        _print(
            console,
            f"with an interpreter per incarnation: {len(rows)} experiment{'s' * (len(rows) != 1)} "
            f"of {looked_at} scenario{'s' * (looked_at != 1)} compared, "
            f"{differ or 'none'} came out differently",
        )


def _print_bounds(console: Console, record: RunRecord) -> None:
    """Print what the tier left out, of scenarios that hold."""
    bounded = [row for row in record["scenarios"] if row["pin"] == "holds" and row["bounds"]]
    for scenario in bounded[:_SHOWN]:
        _print(console, f"{plain(scenario['name'])}: {plain('; '.join(scenario['bounds']))}")
    _print_more(console, len(bounded))


def _print_outside(console: Console, record: RunRecord) -> None:
    """Print what workers left outside of their workspaces."""
    leaving = [row for row in record["scenarios"] if row["outside"]]
    for scenario in leaving[:_SHOWN]:
        left = ", ".join(plain(each) for each in scenario["outside"][:_SHOWN])
        _print(
            console,
            f"{plain(scenario['name'])}: its worker leaves something outside of its workspace, "
            f"where other experiments and programs see it: {left}",
        )
    _print_more(console, len(leaving))


def _print(console: Console, text: str) -> None:
    if text.lstrip().startswith("::"):
        # A CI system would obey a line that begins so.
        text = f"  | {text.lstrip()}"
    console.print(text, soft_wrap=True, markup=False)


def _print_more(console: Console, count: int) -> None:
    if count > _SHOWN:
        console.print(f"  ... and {count - _SHOWN} more; all are in the record")
