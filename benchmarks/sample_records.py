"""Small hand-made records, for tests too: a run, the run before it, a failure of two crashes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.record.failure_schema import FailureRecord, HistoryRow
    from harness.record.run_schema import ExperimentRow, RunRecord

FINGERPRINT = "0123456789abcdef"
SCHEDULE = "order.charge.after#1=kill / order.scan.before#1=kill"


def experiment(
    scenario: str, schedule: str, verdict: str = "held", pin: str = "holds"
) -> ExperimentRow:
    """Make an experiment."""
    broken = verdict == "broken"
    row: ExperimentRow = {
        "id": f"{scenario}[{schedule or 'control'}]",
        "scenario": scenario,
        "schedule": schedule,
        "seed": 7,
        "verdict": verdict,  # type: ignore[typeddict-item]
        "pin": pin,
        "known": False,
        "violations": [{"oracle": "no-effect-twice", "message": "charge 'o1' happened 2 times"}]
        if broken
        else [],
        "fired": [],
        "fingerprint": FINGERPRINT if broken else "",
        "note": "" if verdict in ("held", "broken") else "the worker exited with code 1\nTraceback",
    }
    return row


def run_record() -> RunRecord:
    """Make the record of a run with everything in it."""
    return {
        "schema": "crash-harness/results/5",
        "tier": "full",
        "seed": 7,
        "interrupted": "",
        "scenarios": [
            {
                "name": "orders",
                "pin": "holds",
                "finished": True,
                "as_pinned": False,
                "mismatch": "1 experiment broke a promise",
                "inconclusive": ["orders[order.finish.after#1=kill]: wrong_death: exited"],
                "bounds": ["explored the recovery of 2 states that 3 crashes left"],
                "outside": [],
                "fork_sample": {
                    "experiments": [
                        {
                            "schedule": "",
                            "forked": "held",
                            "fresh": "held",
                            "oracles": [],
                            "agrees": True,
                        }
                    ],
                    "why_not": "",
                },
                "oracles": [{"name": "no-effect-twice", "promise": "nothing happens twice"}],
            },
            {
                "name": "bad-orders",
                "pin": "broken:no-effect-twice",
                "finished": True,
                "as_pinned": True,
                "mismatch": "",
                "inconclusive": [],
                "bounds": [],
                "fork_sample": {"experiments": [], "why_not": "this run did not come to it"},
                "outside": [],
                "oracles": [{"name": "no-effect-twice", "promise": "nothing happens twice"}],
            },
        ],
        "experiments": [
            experiment("orders", ""),
            experiment("orders", "order.charge.before#1=kill"),
            experiment("orders", SCHEDULE, "broken"),
            experiment("orders", "order.finish.after#1=kill", "wrong_death"),
            experiment("bad-orders", ""),
            experiment(
                "bad-orders", "order.charge.after#1=kill", "broken", "broken:no-effect-twice"
            ),
        ],
        "moments": [
            {
                "scenario": scenario,
                "moment": f"{label}#1",
                "source": f"shop/orders.py:{line}",
                "reached": label != "order.skip.before",
                "struck": int(label != "order.skip.before"),
                "struck_in_recovery": 0,
                "survived": label == "order.charge.before",
            }
            for scenario in ("orders", "bad-orders")
            for line, label in (
                (10, "order.charge.before"),
                (12, "order.charge.after"),
                (15, "order.finish.after"),
                (20, "order.skip.before"),
            )
        ],
        "pins": [
            {
                "scenario": "orders",
                "schedule": "order.charge.before#1=kill",
                "fingerprint": "",
                "reason": "comes with version 3",
                "date": "2026-11-30",
                "state": "fixed",
            }
        ],
        "totals": {
            "scenarios": 2,
            "as_pinned": 1,
            "experiments": 6,
            "held": 3,
            "broken": 2,
            "not_fired": 0,
            "wrong_death": 1,
            "flaky": 0,
            "hung": 0,
            "unknown": 0,
            "moments_found": 8,
            "moments_struck": 6,
            "moments_survived": 2,
            "exit_code": 1,
        },
        "timing": {
            "started": "2026-11-30T12:00:00+00:00",
            "seconds": 1.5,
            "experiments_per_s": 4.0,
            "lanes": 2,
            "previous": "20261130T110000Z",
            "slowest": [{"id": f"orders[{SCHEDULE}]", "seconds": 0.75}],
            "each": [0.25, 0.125, 0.75, 0.25, 0.0, 0.125],
        },
    }


def run_before() -> RunRecord:
    """Make the record of the run before: one experiment held, one is not there."""
    record = copy.deepcopy(run_record())
    record["experiments"][2] = experiment("orders", SCHEDULE)
    del record["experiments"][3]
    return record


def _row(order: int, incarnation: int, what: str, text: str, /, **context: str) -> HistoryRow:
    row: HistoryRow = {
        "order": order,
        "incarnation": incarnation,
        "lane": "world" if what in ("fact", "effect") else "worker",
        "what": what,  # type: ignore[typeddict-item]
        "text": text,
        "context": context,
        "hits": {"": 1},
        "stopped": what == "struck",
    }
    return row


def failure_record() -> FailureRecord:
    """Make the record of a failure with everything in it."""
    return {
        "schema": "crash-harness/failure/4",
        "fingerprint": FINGERPRINT,
        "scenarios_from": "shop/scenarios.py",
        "scenario": "orders",
        "schedule": SCHEDULE,
        "seed": 7,
        "pin": "holds",
        "violations": [
            {"oracle": "no-effect-twice", "message": "charge 'o1' happened 2 times"},
            {"oracle": "no-effect-twice", "message": "charge 'o2' happened 3 times"},
        ],
        "promises": [
            {"name": "commands-end", "promise": "every accepted command ends", "remedy": ""},
            {
                "name": "no-effect-twice",
                "promise": "no side effect happens twice",
                "remedy": "Save the key of an effect before it happens.",
            },
        ],
        "strikes": [
            {
                "moment": "order.charge.after#1",
                "incarnation": 1,
                "file": "shop/orders.py",
                "line": 12,
                "lines": [
                    {"number": 11, "text": "    provider.charge(order)"},
                    {"number": 12, "text": '    crash_point("order.charge.after")'},
                ],
                "passed": ["order.charge.before[order=o1]"],
                "next_in_control": "order.finish.after[order=o1]",
            },
            {
                "moment": "order.scan.before#1",
                "incarnation": 2,
                "file": "",
                "line": 0,
                "lines": [],
                "passed": [],
                "next_in_control": "",
            },
        ],
        "incarnations": [
            {"number": 1, "death": "killed by SIGKILL", "output": "charging o1\n"},
            {"number": 2, "death": "killed by SIGKILL", "output": ""},
            {"number": 3, "death": "exited with code 0", "output": ""},
        ],
        "history": [
            _row(1, 1, "started", "started"),
            _row(2, 1, "point", "order.charge.before", order="o1"),
            _row(3, 1, "struck", "order.charge.after", order="o1"),
            _row(4, 1, "fact", "command o1 acknowledged by session-1"),
            _row(5, 1, "effect", "charge o1 by worker-1"),
            _row(6, 1, "ended", "killed by SIGKILL"),
            _row(7, 2, "started", "started"),
            _row(8, 2, "struck", "order.scan.before"),
            _row(9, 2, "ended", "killed by SIGKILL"),
            _row(10, 3, "started", "started"),
            _row(11, 3, "point", "order.charge.before", order="o1"),
            _row(12, 3, "effect", "charge o1 by worker-1"),
            _row(13, 3, "ended", "exited with code 0"),
        ],
        "history_left_out": 0,
        "workload": {"twice": ["o1"], "lost": ["reply 1 to ack of o1"]},
        "commands": [
            {
                "command_id": "o1",
                "body": '{"price": 3}',
                "fresh": False,
                "delivered": 2,
                "acknowledged": 1,
                "accepted_in": 1,
                "reported": ["succeeded"],
                "ended": "succeeded",
            },
            {
                "command_id": "o2",
                "body": "{}",
                "fresh": True,
                "delivered": 0,
                "acknowledged": 0,
                "accepted_in": 0,
                "reported": [],
                "ended": "",
            },
        ],
        "effects": [{"kind": "charge", "key": "o1", "times": 2, "by": ["worker-1", "worker-1"]}],
        "decisions": [
            {
                "incarnation": 3,
                "attempt_id": "a1",
                "decision": "restart",
                "reason": "it was running and has no checkpoint",
            }
        ],
        "states": [
            {
                "incarnation": 1,
                "title": "at the strike, order.charge.after#1",
                "files": [
                    {
                        "path": "worker/worker.db",
                        "size_bytes": 0,
                        "checksum": "rows:" + "ab" * 32,
                        "change": "added",
                    },
                    {
                        "path": "worker/note.txt",
                        "size_bytes": 3,
                        "checksum": "sha256:" + "cd" * 32,
                        "change": "added",
                    },
                ],
                "files_left_out": 0,
                "tables": [
                    {
                        "database": "worker/worker.db",
                        "table": "inbox",
                        "columns": ["id", "state"],
                        "rows": [{"change": "added", "cells": ["o1", "new"], "before": []}],
                        "total": 1,
                        "left_out": 0,
                        "note": "",
                    },
                    {
                        "database": "worker/worker.db",
                        "table": "outbox",
                        "columns": ["id"],
                        "rows": [],
                        "total": 0,
                        "left_out": 0,
                        "note": "",
                    },
                ],
            },
            {
                "incarnation": 3,
                "title": "after recovery",
                "files": [
                    {
                        "path": "worker/note.txt",
                        "size_bytes": 3,
                        "checksum": "sha256:" + "cd" * 32,
                        "change": "removed",
                    }
                ],
                "files_left_out": 2,
                "tables": [
                    {
                        "database": "worker/worker.db",
                        "table": "inbox",
                        "columns": ["id", "state"],
                        "rows": [
                            {"change": "changed", "cells": ["o1", "done"], "before": ["o1", "new"]},
                            {"change": "same", "cells": ["o0", "done"], "before": []},
                            {"change": "removed", "cells": ["o9", "new"], "before": []},
                        ],
                        "total": 2,
                        "left_out": 4,
                        "note": "",
                    }
                ],
            },
        ],
        "survivors": ["'sleep': sleep 100"],
        "control": {
            "verdict": "held",
            "note": "",
            "points": [
                {"label": "order.charge.before", "here": 2, "control": 1},
                {"label": "order.charge.after", "here": 1, "control": 1},
            ],
            "history": [
                _row(1, 1, "started", "started"),
                _row(2, 1, "point", "order.charge.before", order="o1"),
                _row(3, 1, "point", "order.charge.after", order="o1"),
                _row(4, 1, "point", "order.finish.after", order="o1"),
                _row(5, 1, "effect", "charge o1 by worker-1"),
                _row(6, 1, "ended", "exited with code 0"),
            ],
            "history_left_out": 0,
            "state": {
                "incarnation": 1,
                "title": "the control leg at rest",
                "files": [
                    {
                        "path": "worker/note.txt",
                        "size_bytes": 3,
                        "checksum": "sha256:" + "cd" * 32,
                        "change": "added",
                    },
                    {
                        "path": "worker/lock",
                        "size_bytes": 0,
                        "checksum": "sha256:" + "ef" * 32,
                        "change": "same",
                    },
                ],
                "files_left_out": 0,
                "tables": [
                    {
                        "database": "worker/worker.db",
                        "table": "outbox",
                        "columns": ["id"],
                        "rows": [{"change": "added", "cells": ["o1"], "before": []}],
                        "total": 1,
                        "left_out": 0,
                        "note": "",
                    },
                    {
                        "database": "worker/worker.db",
                        "table": "inbox",
                        "columns": ["id", "state"],
                        "rows": [{"change": "same", "cells": ["o0", "done"], "before": []}],
                        "total": 1,
                        "left_out": 0,
                        "note": "",
                    },
                ],
            },
        },
        "minimal": {
            "schedule": "order.charge.after#1=kill",
            "how": "2 shorter schedules tried, 1 broke the same promise",
            "steps": [
                {"schedule": "order.scan.before#1=kill", "verdict": "not_fired", "taken": False},
                {"schedule": "order.charge.after#1=kill", "verdict": "broken", "taken": True},
            ],
        },
        "environment": {
            "python": "CPython 3.11.7",
            "platform": "Linux 6.1 x86_64",
            "packages": {"crash-harness": "0.1.0"},
            "variables": {"CI": "true", "CRASH_HARNESS_TOKEN": "<masked>"},
        },
    }
