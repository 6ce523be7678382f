"""The summary at the end of a run, for a terminal."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypedDict, cast

from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console, JustifyMethod

    from harness.jsontext import JsonObject

_SHOWN = 10


class _Violation(TypedDict):
    oracle: str
    message: str


class _Experiment(TypedDict):
    scenario: str
    schedule: str
    verdict: str
    pin: str
    violations: list[_Violation]
    fingerprint: str


class _Moment(TypedDict):
    scenario: str
    moment: str
    struck: int
    survived: bool


class _Scenario(TypedDict):
    name: str
    pin: str
    as_pinned: bool
    mismatch: str
    inconclusive: list[str]
    bounds: list[str]


class _Record(TypedDict):
    experiments: list[_Experiment]
    moments: list[_Moment]
    scenarios: list[_Scenario]
    totals: dict[str, int]
    timing: dict[str, float]


def print_summary(console: Console, record: JsonObject, directory: Path) -> None:
    """Print what a run came to: a table of scenarios, what failed and why, the counts, the record.

    Args:
        console: Where to print.
        record: The content of ``results.json``.
        directory: Where the record is.
    """
    run = cast("_Record", record)
    console.print(_table(run))
    for scenario in run["scenarios"]:
        if not scenario["as_pinned"]:
            _print_scenario(console, run, scenario, directory)
    for scenario in run["scenarios"]:
        if scenario["pin"] == "holds" and scenario["bounds"]:
            console.print(f"{escape(scenario['name'])}: {escape('; '.join(scenario['bounds']))}")
    totals, timing = run["totals"], run["timing"]
    console.print(
        f"\nmoments: {totals['moments_found']} found, {totals['moments_struck']} struck, "
        f"{totals['moments_survived']} survived"
    )
    console.print(
        f"experiments: {totals['experiments']} in {timing['seconds']:.1f} s "
        f"({timing['experiments_per_s']:.1f} per second), "
        f"{totals['held']} held, {totals['broken']} broken"
    )
    console.print(f"as pinned: {totals['as_pinned']} of {totals['scenarios']} scenarios")
    console.print(f"record: {directory}", soft_wrap=True, markup=False)


def _table(run: _Record) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("scenario", "pinned", "held", "broken", "other", "moments", "survived", ""):
        justify: JustifyMethod = "right" if column in _NUMBERS else "left"
        table.add_column(column, justify=justify, no_wrap=column == "scenario")
    for scenario in run["scenarios"]:
        name = scenario["name"]
        verdicts = Counter(e["verdict"] for e in run["experiments"] if e["scenario"] == name)
        moments = [m for m in run["moments"] if m["scenario"] == name]
        held, broken = verdicts["held"], verdicts["broken"]
        good = scenario["as_pinned"]
        table.add_row(
            escape(name),
            escape(scenario["pin"]),
            str(held),
            str(broken),
            str(verdicts.total() - held - broken),
            str(len(moments)),
            str(sum(m["survived"] for m in moments)),
            "[green]as pinned[/]" if good else "[bold red]NOT as pinned[/]",
        )
    return table


_NUMBERS = ("held", "broken", "other", "moments", "survived")


def _print_scenario(console: Console, run: _Record, scenario: _Scenario, directory: Path) -> None:
    name = scenario["name"]
    why = scenario["mismatch"] or "inconclusive"
    console.print(f"\n[bold red]{escape(name)}[/]: {escape(why)}")
    for reason in scenario["inconclusive"][:_SHOWN]:
        console.print(f"  {escape(reason)}", soft_wrap=True)
    _print_more(console, len(scenario["inconclusive"]))
    if scenario["pin"] != "holds":
        return
    broken = [e for e in run["experiments"] if e["scenario"] == name and e["verdict"] == "broken"]
    for experiment in broken[:_SHOWN]:
        console.print(f"  {escape(experiment['schedule'] or 'control')}", soft_wrap=True)
        for violation in experiment["violations"][:_SHOWN]:
            found = f"{violation['oracle']}: {violation['message']}"
            console.print(f"    {escape(found)}", soft_wrap=True)
        again = directory / "failures" / experiment["fingerprint"]
        console.print(f"    crash-harness repro {again}", soft_wrap=True, markup=False)
    _print_more(console, len(broken))


def _print_more(console: Console, count: int) -> None:
    if count > _SHOWN:
        console.print(f"  ... and {count - _SHOWN} more; all are in the record")
