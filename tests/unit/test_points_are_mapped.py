"""docs/points.md maps the crash points of the requirements to labels, and stays true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.moments.catalogue import scan

TABLE = Path(__file__).parents[2] / "docs" / "points.md"
COUNTS = {"A": 6, "B": 8, "C": 3, "D": 6, "E": 5, "F": 5, "G": 8, "H": 4, "K": 5}
"""How many crash points the requirements have under each letter."""

LABEL = re.compile(r"`([a-z_]+\.[a-z_]+\.(?:before|after|mid))(?:\[(\w+)=[^\]`]+\])?`")
ROW = re.compile(r"^\| (CP-[A-K]\d) \|[^|]*\| (.*) \|$", re.MULTILINE)


def test_every_point_of_the_requirements_has_a_row() -> None:
    """Each crash point stands there once, with labels or the words "not yet"."""
    rows = ROW.findall(TABLE.read_text(encoding="utf-8"))
    wanted = [f"CP-{letter}{n}" for letter, count in COUNTS.items() for n in range(1, count + 1)]
    assert [name for name, _ in rows] == wanted
    for name, labels in rows:
        assert (labels == "not yet") != bool(LABEL.search(labels)), name


def test_the_runtime_has_its_points() -> None:
    """But for steps and power loss, no crash point is without a label."""
    missing = {
        name
        for name, labels in ROW.findall(TABLE.read_text(encoding="utf-8"))
        if labels == "not yet"
    }
    assert missing <= {"CP-B6", "CP-B7", "CP-G6"}


@pytest.mark.requirement("HAR-01")
def test_the_labels_are_those_that_the_worker_declares() -> None:
    """A label that is gone, or new and not in the table, fails here; so does a context."""
    declared = {point.label: point for point in scan(("worker_under_test",))}
    mapped = LABEL.findall(TABLE.read_text(encoding="utf-8"))
    assert {label for label, _ in mapped} == set(declared)
    for label, key in mapped:
        assert not key or key in declared[label].context, label
