"""Large records, for sizes and for the benchmark of rendering."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.sample_records import experiment, failure_record, run_record

if TYPE_CHECKING:
    from harness.record.failure_schema import FailureRecord
    from harness.record.run_schema import RunRecord

_LABELS = 60
_CONTROL = 10_000


def large_run(count: int) -> RunRecord:
    """Make a run of so many experiments; one in twenty is broken."""
    record = run_record()
    labels = [f"part{n}.step.before" for n in range(_LABELS)]
    record["experiments"] = [
        experiment(
            "orders",
            f"{labels[n % _LABELS]}[command=c{n}]#1=kill / {labels[n // 7 % _LABELS]}#1=kill",
            "held" if n % 20 else "broken",
        )
        for n in range(count)
    ]
    record["timing"]["each"] = [0.125] * count
    record["moments"] = [
        {**record["moments"][0], "moment": f"{labels[n % _LABELS]}[command=c{n}]#1"}
        for n in range(count)
    ]
    return record


def large_failure(count: int) -> FailureRecord:
    """Make a failure with so many events in its history, struck at the end of two lives.

    Its control leg has as many as a record keeps.
    """
    record = failure_record()
    life = count // 2
    rows = record["history"]
    point = rows[1]
    record["history"] = [
        {
            **(rows[2] if (n + 1) % life == 0 else point),
            "order": n + 1,
            "incarnation": 1 + n // life,
            "context": {"order": f"o{n}"},
        }
        for n in range(count)
    ]
    control = record["control"]
    control["history"] = [{**row, "incarnation": 1} for row in record["history"][:_CONTROL]]
    return record
