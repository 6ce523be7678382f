"""The declaration of a step."""

from __future__ import annotations

import dataclasses
import json

import pytest

from worker_under_test.checkpoint import Snapshot, StepDef, build_plan


@pytest.mark.parametrize(
    ("absent", "default"), [("id", ""), ("label", ""), ("depends_on", ()), ("isolated", False)]
)
def test_fields_and_defaults(absent: str, default: object) -> None:
    """STP-01: id, label, dependencies and isolation, from JSON, each with its zero as default."""
    given = json.loads('{"id": "a", "label": "A", "depends_on": ["b"], "isolated": true}')
    assert StepDef(**given) == StepDef("a", "A", ("b",), isolated=True)
    del given[absent]
    assert getattr(StepDef(**given), absent) == default


@pytest.mark.parametrize("nothing", [None, [], ()])
def test_nothing_is_one_value(nothing: list[str] | None) -> None:
    """STP-06: None, [] and () make equal steps."""
    assert StepDef("a", depends_on=nothing) == StepDef("a")


def test_a_string_is_not_a_list_of_ids() -> None:
    """STP-06: a forgotten pair of brackets is an error, not one dependency per letter."""
    with pytest.raises(TypeError, match="'ab'"):
        StepDef("c", depends_on="ab")


def test_a_step_cannot_change() -> None:
    """PLN-01: a step keeps its own copy of its dependencies and is frozen."""
    names = ["a"]
    step = StepDef("b", depends_on=names)
    names.append("c")
    assert step.depends_on == ("a",)
    with pytest.raises(dataclasses.FrozenInstanceError):
        step.id = "c"  # type: ignore[misc]


def test_isolation_is_about_order_only() -> None:
    """STP-07, STP-08, STP-09: isolated means no predecessor, and says so; followers still wait."""
    assert "nothing about where the step runs" in (StepDef.__doc__ or "")
    graph = [StepDef("a"), StepDef("b", isolated=True), StepDef("c")]
    plan = build_plan(graph, Snapshot("run", 1, "running", ["b"]))
    assert (plan.skip, plan.run) == (("b",), ("a", "c"))


@pytest.mark.parametrize("label", ["", "same", "b", "\n"])
def test_a_label_is_never_interpreted(label: str) -> None:
    """STP-02: equal, empty or misleading labels change nothing."""
    graph = [StepDef("a", label), StepDef("b", label)]
    plan = build_plan(graph, Snapshot("run", 1, "running", ["a"]))
    assert (plan.skip, plan.run, plan.anomalies) == (("a",), ("b",), ())
