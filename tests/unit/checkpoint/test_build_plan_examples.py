"""The worked examples of `build_plan`, one test per row of build_plan_examples.txt."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from naive_plan import naive_plan
from plan_notation import Example, parse_graph, parse_snapshot, read_examples

from worker_under_test.checkpoint import (
    AnomalyKind,
    Plan,
    Snapshot,
    Status,
    StepDef,
    build_plan,
)

EXAMPLES = read_examples(Path(__file__).with_name("build_plan_examples.txt"))
each_example = pytest.mark.parametrize("example", EXAMPLES, ids=[e.name for e in EXAMPLES])


def outcome(plan: Plan) -> tuple[object, ...]:
    """Return what an example states of a plan."""
    found = tuple((anomaly.kind, anomaly.step) for anomaly in plan.anomalies)
    return plan.skip, plan.run, found, plan.blocked


def test_every_example_is_there() -> None:
    """The table holds all 118 examples, none twice and none left out."""
    assert [e.name for e in EXAMPLES] == [f"BP-X{n:02}" for n in range(1, 119)]


@pytest.mark.requirement("PLN-02..PLN-25", "STP-03..STP-19", "ANO-01..ANO-12")
@each_example
def test_example(example: Example) -> None:
    """The plan is the one of the table."""
    assert outcome(build_plan(example.graph, example.snapshot)) == (
        example.skip,
        example.run,
        example.anomalies,
        example.blocked,
    )


@pytest.mark.requirement("PLN-04")
@each_example
def test_example_by_the_naive_planner(example: Example) -> None:
    """The planner that the real one is compared with agrees with the table as well."""
    plan = naive_plan(example.graph, example.snapshot)
    assert (tuple(plan.skip), tuple(plan.run), tuple(plan.anomalies)) == (
        example.skip,
        example.run,
        example.anomalies,
    )


@pytest.mark.requirement("SNP-07", "SNP-08")
@each_example
def test_done_has_no_order_and_no_repetition(example: Example) -> None:
    """No order of ``done`` and no repetition in it changes skip, run or blocked."""
    if example.snapshot is None:
        return
    for order in itertools.permutations(dict.fromkeys(example.snapshot.done)):
        for done in (order, order + order[::-1]):
            plan = build_plan(example.graph, replace(example.snapshot, done=done))
            assert (plan.skip, plan.run, plan.blocked) == (
                example.skip,
                example.run,
                example.blocked,
            )


@pytest.mark.requirement("SNP-09", "SNP-10", "STP-02", "PLN-27")
@each_example
def test_only_done_and_status_count(example: Example) -> None:
    """Label, fields, run id and seq change nothing in a plan."""
    labelled = tuple(replace(step, label="same label") for step in example.graph)
    for seq in (0, 1, 99):
        snapshot = example.snapshot and replace(
            example.snapshot, run_id="other", seq=seq, fields={"": "x", "a": "done", "🜁": "\0"}
        )
        assert build_plan(labelled, snapshot) == build_plan(example.graph, example.snapshot)


@pytest.mark.requirement("STP-03", "STP-06")
@each_example
@pytest.mark.parametrize("nothing", [None, [], ()], ids=["None", "list", "tuple"])
def test_every_nothing_is_undeclared(example: Example, nothing: list[str] | None) -> None:
    """None, [] and () all mean undeclared, in every example."""
    graph = [replace(s, depends_on=s.depends_on or nothing) for s in example.graph]
    assert build_plan(graph, example.snapshot) == build_plan(example.graph, example.snapshot)


@pytest.mark.requirement("PLN-01")
@each_example
def test_inputs_stay_as_they_were(example: Example) -> None:
    """Planning twice gives equal plans and changes neither graph nor snapshot."""
    graph = list(example.graph)
    snapshot = example.snapshot and example.snapshot.clone()
    assert build_plan(graph, snapshot) == build_plan(graph, snapshot)
    assert (graph, snapshot) == (list(example.graph), example.snapshot)


@pytest.mark.requirement("SNP-05", "SNP-06", "PLN-17", "PLN-18", "PLN-21", "ANO-05", "ANO-07")
@pytest.mark.parametrize("status", [*Status, "paused", "Completed", "completed "])
@pytest.mark.parametrize(("done", "unfinished"), [("{a,b}", False), ("{a}", True)])
def test_a_terminal_run_is_never_reopened(status: str, done: str, *, unfinished: bool) -> None:
    """A plan is blocked only if the run has ended with steps left."""
    snapshot = parse_snapshot(done)
    assert snapshot is not None
    plan = build_plan(parse_graph("a b"), replace(snapshot, status=status))
    ended = status in {"completed", "failed", "cancelled"}
    assert plan.blocked == (ended and unfinished)
    if plan.blocked:
        assert (plan.skip, plan.run) == ((), ())
    else:
        assert sorted((*plan.skip, *plan.run)) == ["a", "b"]


@pytest.mark.requirement("PLN-18", "PLN-19", "PLN-20", "ANO-07")
@pytest.mark.parametrize(
    ("kind", "graph", "snapshot"),
    [
        (AnomalyKind.EMPTY_STEP_ID, "a ∅", "{a}"),
        (AnomalyKind.DUPLICATE_STEP, "a a", "{a}"),
        (AnomalyKind.DONE_NOT_IN_GRAPH, "a", "{b}"),
        (AnomalyKind.DONE_OUT_OF_ORDER, "a b", "{b}"),
        (AnomalyKind.COMPLETE_WITH_PENDING, "a b", "{a} / failed"),
    ],
)
def test_each_kind_is_told_apart(kind: AnomalyKind, graph: str, snapshot: str) -> None:
    """`has_anomaly` names one kind; only the last one blocks."""
    plan = build_plan(parse_graph(graph), parse_snapshot(snapshot))
    assert [other for other in AnomalyKind if plan.has_anomaly(other)] == [kind]
    assert plan.blocked == (kind is AnomalyKind.COMPLETE_WITH_PENDING)
    assert plan.blocked or plan.skip or plan.run


@pytest.mark.requirement("ANO-01..ANO-06")
def test_kinds_have_the_texts_of_the_seed() -> None:
    """An anomaly has kind, step and detail; the kinds are exactly these texts."""
    assert [str(kind) for kind in AnomalyKind] == [
        "empty_step_id",
        "duplicate_step",
        "done_not_in_graph",
        "done_out_of_order",
        "complete_with_pending",
    ]
    (anomaly,) = build_plan(parse_graph("a"), parse_snapshot("{b}")).anomalies
    assert (anomaly.kind, anomaly.step) == (AnomalyKind.DONE_NOT_IN_GRAPH, "b")
    assert anomaly.detail


@pytest.mark.requirement("ANO-03", "ANO-09", "ANO-11", "ANO-13")
def test_details_tell_where_and_why() -> None:
    """Every report names its place or its reason."""
    graph = parse_graph("∅ a a b<ghost c d<c")
    plan = build_plan(graph, parse_snapshot("{x,b,d,c} / failed"))
    again = "it runs again"
    assert [(anomaly.step, anomaly.detail) for anomaly in plan.anomalies] == [
        ("", "left out at position 0 of the graph, counted from 0"),
        ("a", "left out at position 2 of the graph, counted from 0"),
        ("x", "recorded as done, and the graph has no such step; it does not run"),
        ("b", f"recorded as done, but it depends on 'ghost', which is not in the graph; {again}"),
        ("c", f"recorded as done, but a step before it is not finished or not trusted; {again}"),
        (
            "d",
            f"recorded as done, but a step it depends on is not finished or not trusted; {again}",
        ),
        ("", plan.anomalies[-1].detail),
    ]
    assert plan.anomalies[-1].detail.startswith("the run ended as 'failed' and 4 of 4 steps would")


@pytest.mark.requirement("STP-20")
@pytest.mark.parametrize(
    ("in_graph", "in_done"),
    [("A", "a"), ("a", "a "), ("é", "e\u0301"), ("ﬁ", "fi"), ("a", "\ufeffa")],
)
def test_ids_are_compared_exactly(in_graph: str, in_done: str) -> None:
    """Case, spaces and Unicode form tell ids apart."""
    graph = [StepDef(in_graph), StepDef("next", depends_on=[in_done])]
    plan = build_plan(graph, Snapshot("run", 1, "running", [in_done, "next"]))
    assert (plan.skip, plan.run) == ((), (in_graph, "next"))
    assert [anomaly.step for anomaly in plan.anomalies] == [in_done, "next"]
