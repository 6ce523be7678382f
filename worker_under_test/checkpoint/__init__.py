"""Resume after a crash: how far a run has come, and what is left of it.

`build_plan` derives from a graph of steps and the last snapshot what to skip and what to run.
`Committer` brings snapshots into a store so that the stored sequence number of a run never goes
down, through `SeqGate` within a process and through the store's conditional write between
processes. The stores are in `worker_under_test.checkpoint.stores`, one module each.

On a start, in this order: `Committer.seed_from_store`, `load_if_any`, `build_plan`, then run; no
commit before the seeding (ORC-04). The next snapshot builds on the plan's ``skip`` and on the
finished ids that the graph does not know, never on the loaded ``done`` (ORC-11).
"""

from worker_under_test.checkpoint.committer import Committer
from worker_under_test.checkpoint.errors import (
    ConflictingSnapshotError,
    DamagedRecordError,
    InvalidSnapshotError,
    NotFound,
    StaleSeq,
    StoreMissing,
)
from worker_under_test.checkpoint.gate import SeqGate
from worker_under_test.checkpoint.graph_check import DefectKind, GraphDefect, check_graph
from worker_under_test.checkpoint.plan import Anomaly, AnomalyKind, Plan, build_plan
from worker_under_test.checkpoint.snapshot import MAX_SEQ, TERMINAL_STATUSES, Snapshot, Status
from worker_under_test.checkpoint.step import StepDef
from worker_under_test.checkpoint.store import Store, StoreCAS, load_if_any

__all__ = [
    "MAX_SEQ",
    "TERMINAL_STATUSES",
    "Anomaly",
    "AnomalyKind",
    "Committer",
    "ConflictingSnapshotError",
    "DamagedRecordError",
    "DefectKind",
    "GraphDefect",
    "InvalidSnapshotError",
    "NotFound",
    "Plan",
    "SeqGate",
    "Snapshot",
    "StaleSeq",
    "Status",
    "StepDef",
    "Store",
    "StoreCAS",
    "StoreMissing",
    "build_plan",
    "check_graph",
    "load_if_any",
]
