"""The snapshot as a value: fields, copies, bounds, states."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import cast

import pytest

from worker_under_test.checkpoint import (
    MAX_SEQ,
    TERMINAL_STATUSES,
    InvalidSnapshotError,
    Snapshot,
    Status,
)


@pytest.mark.requirement("SNP-01")
def test_fields() -> None:
    """A snapshot has run, number, state, finished steps, open fields, and nothing else."""
    assert [field.name for field in dataclasses.fields(Snapshot)] == [
        "run_id",
        "seq",
        "status",
        "done",
        "fields",
    ]
    snapshot = Snapshot("run", 1, "running")
    assert (snapshot.done, snapshot.fields) == ((), {})


@pytest.mark.requirement("SNP-04", "SNP-17")
@pytest.mark.parametrize("seq", [0, 1, 2**63 - 1])
def test_numbers_within_bounds(seq: int) -> None:
    """0 is the number of no snapshot; the highest is what SQLite can hold."""
    assert Snapshot("run", seq, "running").seq == seq <= MAX_SEQ


@pytest.mark.requirement("SNP-17")
@pytest.mark.parametrize("seq", [-1, 2**63, 2**64 - 1, 1.5, 1.0, True, "1", None])
def test_numbers_out_of_bounds(seq: object) -> None:
    """What is not a number from 0 to 2^63-1 is refused, neither wrapped nor rounded."""
    with pytest.raises(InvalidSnapshotError, match="seq"):
        Snapshot("run", cast("int", seq), "running")


@pytest.mark.requirement("SNP-01")
@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"run_id": 7}, "run_id"),
        ({"status": None}, "status"),
        ({"done": "ab"}, "done"),
        ({"done": ["a", 7]}, "done"),
        ({"fields": {1: "x"}}, "key"),
        ({"fields": {"x": 1}}, "value"),
    ],
)
def test_wrong_types(wrong: dict[str, object], what: str) -> None:
    """A value of another type is refused where it is made, not where it is stored."""
    values: dict[str, object] = {"run_id": "run", "seq": 1, "status": "running", **wrong}
    with pytest.raises(InvalidSnapshotError, match=what):
        Snapshot(**values)  # type: ignore[arg-type]


@pytest.mark.requirement("SNP-11", "HAR-08")
def test_a_clone_shares_nothing() -> None:
    """Changing a clone leaves the original alone, and the other way round."""
    original = Snapshot("run", 1, "running", ["a"], {"key": "value"})
    clone = original.clone()
    assert clone == original
    cast("dict[str, str]", clone.fields)["key"] = "changed in the clone"
    assert original.fields == {"key": "value"}
    cast("dict[str, str]", original.fields).clear()
    assert clone.fields == {"key": "changed in the clone"}
    assert clone.done == original.done == ("a",)


@pytest.mark.requirement("SNP-11", "SNP-12")
def test_a_snapshot_keeps_copies() -> None:
    """What its maker does later with list and dict does not reach it."""
    done, fields = ["a"], {"key": "value"}
    snapshot = Snapshot("run", 1, "running", done, fields)
    done.append("b")
    fields["key"] = "other"
    assert (snapshot.done, snapshot.fields) == (("a",), {"key": "value"})
    with pytest.raises(dataclasses.FrozenInstanceError):
        snapshot.seq = 2  # type: ignore[misc]


@pytest.mark.requirement("SNP-01")
def test_copies_of_every_kind_are_equal() -> None:
    """A snapshot can be pickled and copied."""
    snapshot = Snapshot("run", 1, Status.RUNNING, ("a",), {"": "🜁"})
    for same in (pickle.loads(pickle.dumps(snapshot)), copy.deepcopy(snapshot), snapshot.clone()):
        assert same == snapshot


@pytest.mark.requirement("SNP-05", "SNP-06")
def test_states() -> None:
    """The set is closed; completed, failed and cancelled are its terminal part."""
    assert {str(status) for status in Status} == {
        "",
        "running",
        "completed",
        "failed",
        "cancelled",
    }
    assert {"completed", "failed", "cancelled"} == TERMINAL_STATUSES
    for status in (*Status, "paused"):
        snapshot = Snapshot("run", 1, status)
        assert type(snapshot.status) is str
        assert snapshot.is_terminal == (status in {"completed", "failed", "cancelled"})


@pytest.mark.requirement("SNP-07", "SNP-08", "COM-17")
@pytest.mark.parametrize(
    ("other", "same"),
    [
        (Snapshot("run", 5, "running", ["a", "b"], {"k": "v"}), True),
        (Snapshot("run", 5, "running", ["b", "a", "b"], {"k": "v"}), True),
        (Snapshot("other", 5, "running", ["a", "b"], {"k": "v"}), False),
        (Snapshot("run", 6, "running", ["a", "b"], {"k": "v"}), False),
        (Snapshot("run", 5, "failed", ["a", "b"], {"k": "v"}), False),
        (Snapshot("run", 5, "running", ["a"], {"k": "v"}), False),
        (Snapshot("run", 5, "running", ["a", "b"], {}), False),
    ],
)
def test_same_facts(other: Snapshot, *, same: bool) -> None:
    """Two snapshots say the same whatever the order of ``done``."""
    assert Snapshot("run", 5, "running", ["a", "b"], {"k": "v"}).same_facts(other) == same
