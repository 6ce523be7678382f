"""What is printed of a run under several seeds: a line for each, and what all of them came to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.record.interruption import is_through
from harness.record.outcome import ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from harness.record.run_schema import RunRecord

_SHOWN = 20


def print_seed(console: Console, record: RunRecord, directory: Path) -> None:
    """Print one line of a run that is as pinned.

    Args:
        console: Where to print.
        record: Its record.
        directory: Where that is.
    """
    totals = record["totals"]
    console.print(
        f"seed {record['seed']}: as pinned: {totals['as_pinned']} of {totals['scenarios']} "
        f"scenarios; "
        f"{totals['experiments']} experiments in {record['timing']['seconds']:.1f} s; "
        f"record: {directory}",
        soft_wrap=True,
        markup=False,
    )


def print_seeds(console: Console, seeds: Sequence[int], codes: Mapping[int, ExitCode]) -> None:
    """Print under which seeds all was as pinned, and under which it was not.

    Args:
        console: Where to print.
        seeds: The seeds that were asked for.
        codes: The exit code of each that was run.
    """
    right = sum(code is ExitCode.AS_PINNED for code in codes.values())
    console.print(f"\nseeds: all as pinned under {right} of {len(seeds)}", markup=False)
    _print_some(console, "NOT as pinned", [s for s in codes if codes[s] is ExitCode.BROKEN])
    _print_some(console, "inconclusive", [s for s in codes if codes[s] is ExitCode.INCONCLUSIVE])
    _print_some(console, "cut short", [s for s in codes if not is_through(codes[s])])
    _print_some(console, "not run", [seed for seed in seeds if seed not in codes])


def _print_some(console: Console, said: str, seeds: Sequence[int]) -> None:
    if seeds:
        shown = ", ".join(map(str, seeds[:_SHOWN]))
        more = f" and {len(seeds) - _SHOWN} more" if len(seeds) > _SHOWN else ""
        console.print(f"  {said}: {shown}{more}", soft_wrap=True, markup=False)
