"""The declaration of a step."""

from __future__ import annotations

import dataclasses
import json

import pytest

from worker_under_test.checkpoint import Snapshot, StepDef, build_plan


@pytest.mark.requirement("STP-01")
@pytest.mark.parametrize(
    ("absent", "default"), [("id", ""), ("label", ""), ("depends_on", ()), ("isolated", False)]
)
def test_fields_and_defaults(absent: str, default: object) -> None:
    """Id, label, dependencies and isolation come from JSON, with their zeros as defaults."""
    given = json.loads('{"id": "a", "label": "A", "depends_on": ["b"], "isolated": true}')
    assert StepDef(**given) == StepDef("a", "A", ("b",), isolated=True)
    del given[absent]
    assert getattr(StepDef(**given), absent) == default


@pytest.mark.requirement("STP-06")
@pytest.mark.parametrize("nothing", [None, [], ()])
def test_nothing_is_one_value(nothing: list[str] | None) -> None:
    """None, [] and () make equal steps."""
    assert StepDef("a", depends_on=nothing) == StepDef("a")


@pytest.mark.requirement("STP-06")
def test_a_string_is_not_a_list_of_ids() -> None:
    """A forgotten pair of brackets is an error, not one dependency per letter."""
    with pytest.raises(TypeError, match="'ab'"):
        StepDef("c", depends_on="ab")


@pytest.mark.requirement("PLN-01")
def test_a_step_cannot_change() -> None:
    """A step keeps its own copy of its dependencies and is frozen."""
    names = ["a"]
    step = StepDef("b", depends_on=names)
    names.append("c")
    assert step.depends_on == ("a",)
    with pytest.raises(dataclasses.FrozenInstanceError):
        step.id = "c"  # type: ignore[misc]


@pytest.mark.requirement("STP-07", "STP-08", "STP-09")
def test_isolation_is_about_order_only() -> None:
    """Isolated means no predecessor, and says so; followers still wait."""
    assert "nothing about where the step runs" in (StepDef.__doc__ or "")
    graph = [StepDef("a"), StepDef("b", isolated=True), StepDef("c")]
    plan = build_plan(graph, Snapshot("run", 1, "running", ["b"]))
    assert (plan.skip, plan.run) == (("b",), ("a", "c"))


@pytest.mark.requirement("STP-02")
@pytest.mark.parametrize("label", ["", "same", "b", "\n"])
def test_a_label_is_never_interpreted(label: str) -> None:
    """Equal, empty or misleading labels change nothing."""
    graph = [StepDef("a", label), StepDef("b", label)]
    plan = build_plan(graph, Snapshot("run", 1, "running", ["a"]))
    assert (plan.skip, plan.run, plan.anomalies) == (("a",), ("b",), ())
