"""What is printed of a run that is not over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.report.escaping import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.record.half_done import HalfDone

_FAILURES = 20


def half_done_lines(run: HalfDone) -> Iterator[str]:
    """Give the lines: how far it is, what it has found, and what to call next.

    Args:
        run: The run.
    """
    yield run.sentence
    counts = (f"{number} {verdict}" for verdict, number in sorted(run.verdicts.items()))
    if found := ", ".join(counts):
        yield f"  so far: {found}"
    for result in run.broken[:_FAILURES]:
        what = plain(result.experiment_id)
        yield f"  broken: {what} by {', '.join(map(plain, result.oracles))}"
    if len(run.broken) > _FAILURES:
        yield f"  and {len(run.broken) - _FAILURES} more that are broken"
    yield f"  {run.how_to_go_on}"
