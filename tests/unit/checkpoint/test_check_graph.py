"""The check of a graph at registration time."""

from __future__ import annotations

import pytest
from plan_notation import parse_graph

from worker_under_test.checkpoint import DefectKind, StepDef, check_graph

SOUND = ["(empty)", "a b c", "a! b! c!", "a b<a c<a d<b,c", "a<c b c!", "a! b<c c!", "a b<a,a c[]"]


@pytest.mark.requirement("STP-14", "STP-15", "STP-21")
@pytest.mark.parametrize("graph", SOUND)
def test_a_sound_graph_has_no_defects(graph: str) -> None:
    """Forward references to declared steps and repeated names are fine."""
    assert check_graph(parse_graph(graph)) == ()


@pytest.mark.requirement("STP-10", "STP-13", "STP-16", "STP-17", "STP-18", "STP-21")
@pytest.mark.parametrize(
    ("graph", "defects"),
    [
        # BP-X39 to BP-X49
        ("a b a c", ["duplicate_step a"]),
        ("a a a", ["duplicate_step a", "duplicate_step a"]),
        ("∅ ∅", ["empty_step_id ", "empty_step_id "]),
        ("a b<∅", ["dangling_dependency b"]),
        ("a! a<ghost b", ["duplicate_step a"]),
        # BP-X83 to BP-X91
        ("a!<b b", ["isolated_with_dependencies a", "implied_cycle a+b"]),
        ("a b<ghost", ["dangling_dependency b"]),
        ("a b<ghost,x c", ["dangling_dependency b", "dangling_dependency b"]),
        ("a b<a,ghost c<a", ["dangling_dependency b"]),
        # BP-X92 to BP-X102
        ("a<a", ["cycle a"]),
        ("a<b b<a", ["cycle a+b"]),
        ("a<b b<a c!", ["cycle a+b"]),
        ("a<b b<a c", ["cycle a+b"]),
        ("a b<c c", ["implied_cycle b+c"]),
        ("a! b<c c!", []),
        ("r! a<b,r b<a d<b", ["cycle a+b"]),
        # a named cycle inside an implied one, two of a kind, and a path longer than one edge
        ("a<b b<a,d d", ["cycle a+b", "implied_cycle a+b+d"]),
        ("a<b b<a c<d d<c", ["cycle a+b", "cycle c+d"]),
        ("a<b b c<d d", ["implied_cycle a+b", "implied_cycle c+d"]),
        ("a<c b<a c<b", ["cycle a+b+c"]),
    ],
)
def test_defects(graph: str, defects: list[str]) -> None:
    """Each defect is named with its steps."""
    found = check_graph(parse_graph(graph))
    assert [f"{d.kind} {'+'.join(d.steps) or d.step}" for d in found] == defects
    assert all(defect.detail for defect in found)


@pytest.mark.requirement("STP-21")
def test_a_long_cycle_is_told_shortly() -> None:
    """The text names a few steps; the list of all stands beside it."""
    ring = [StepDef(f"s{n}", depends_on=[f"s{(n + 1) % 50}"]) for n in range(50)]
    (defect,) = check_graph(ring)
    assert defect.kind is DefectKind.CYCLE
    assert len(defect.steps) == 50
    assert defect.detail == "'s0', 's1', 's2', 's3', 's4' and 45 more depend on each other"


@pytest.mark.requirement("STP-10", "STP-17", "STP-21")
def test_details_say_what_follows() -> None:
    """The text says what the defect does."""
    graph = parse_graph("∅ a a b<ghost c!<a d<e e")
    assert [defect.detail for defect in check_graph(graph)] == [
        "no id at position 0, counted from 0; it never runs",
        "repeated at position 2, counted from 0; only the first counts",
        "depends on 'ghost', which is not in the graph; it is never trusted",
        "isolated and with dependencies; the dependencies count",
        "'d', 'e' wait for each other: one that declares nothing waits for all earlier ones",
    ]
