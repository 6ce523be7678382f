"""Properties of `build_plan` on random graphs, and agreement with a second planner."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from naive_plan import naive_plan
from plan_notation import parse_graph

from worker_under_test.checkpoint import (
    AnomalyKind,
    DefectKind,
    Plan,
    Snapshot,
    Status,
    StepDef,
    build_plan,
    check_graph,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NAMES = "abcdefgh"
NAMEABLE = [*NAMES, "ghost", ""]
STATUSES = ["running", "running", "", "paused", *(str(s) for s in Status)]


def decode_graph(code: bytes) -> tuple[StepDef, ...]:
    """Turn bytes into a graph of up to eight steps, three bytes a step.

    The first byte chooses the id: the next letter, or, rarely, any letter or the empty id. The
    second chooses the kind of declaration, the third which ids are named. Zeros, to which a failing
    example shrinks, are a chain.
    """
    steps = []
    for place in range(len(code) // 3):
        which, kind, names = code[3 * place : 3 * place + 3]
        step_id = NAMES[place] if which < 224 else NAMEABLE[which % 10]
        named = [
            NAMEABLE[(place + bit * (1 + kind // 64)) % 10] for bit in range(8) if names >> bit & 1
        ]
        declared = kind % 4 in (1, 2)
        steps.append(
            StepDef(step_id, depends_on=named if declared else None, isolated=kind % 4 in (2, 3))
        )
    return tuple(steps)


graphs = st.binary(max_size=24).map(decode_graph)
done_sets = st.integers(0, 2**11 - 1).map(
    lambda mask: tuple(x for bit, x in enumerate([*NAMES, "ghost", "", "zz"]) if mask >> bit & 1)
)
CASE_BYTES, CASES_PER_EXAMPLE, EXAMPLES = 28, 20, 1_000


def decode_case(code: bytes) -> tuple[tuple[StepDef, ...], Snapshot | None]:
    """Turn 28 bytes into a graph and a snapshot: number of steps, status, done, declarations."""
    count, status, *done = code[:4]
    graph = decode_graph(code[4 : 4 + 3 * (count % 9)])
    if status % 8 == 7:
        return graph, None
    names = [*NAMES, "ghost", "", "zz"]
    finished = [name for bit, name in enumerate(names) if (done[0] | done[1] << 8) >> bit & 1]
    if done[1] & 128:
        finished = finished[::-1] + finished
    return graph, snapshot_of(finished, STATUSES[status % len(STATUSES)])


thorough = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def snapshot_of(done: Sequence[str], status: str = "running") -> Snapshot:
    """Return a snapshot of any run with these finished steps."""
    return Snapshot("run", 1, status, done)


def assert_agrees(graph: Sequence[StepDef], snapshot: Snapshot | None) -> Plan:
    """Compare the planner with the naive one."""
    plan, naive = build_plan(graph, snapshot), naive_plan(graph, snapshot)
    assert list(plan.skip) == naive.skip
    assert list(plan.run) == naive.run
    assert [(a.kind, a.step) for a in plan.anomalies] == naive.anomalies
    return plan


@pytest.mark.requirement("PLN-04", "PLN-05", "PLN-14", "STP-11", "STP-16", "ANO-08")
def test_agrees_with_the_naive_planner() -> None:
    """The two planners agree on 20,000 random graphs.

    Each example holds many cases, since drawing costs more than planning. The counts prove that the
    graphs are of every sort.
    """
    seen: Counter[str] = Counter()

    @settings(thorough, max_examples=EXAMPLES, phases=(Phase.generate, Phase.shrink))
    @given(
        st.binary(min_size=CASE_BYTES * CASES_PER_EXAMPLE, max_size=CASE_BYTES * CASES_PER_EXAMPLE)
    )
    def agrees(code: bytes) -> None:
        for start in range(0, len(code), CASE_BYTES):
            graph, snapshot = decode_case(code[start : start + CASE_BYTES])
            plan = assert_agrees(graph, snapshot)
            seen.update({"case", *(d.kind for d in check_graph(graph))})
            seen.update({a.kind for a in plan.anomalies})
            seen["no snapshot"] += snapshot is None
            seen["reordered"] += list(plan.run) != [s.id for s in graph if s.id in plan.run]

    agrees()
    assert seen["case"] >= 20_000
    assert all(seen[sort] > 200 for sort in (*DefectKind, *AnomalyKind, "no snapshot", "reordered"))


def small_graphs() -> Iterator[tuple[StepDef, ...]]:
    """Yield every graph of up to three steps whose ids are a, b, c."""
    for count in range(4):
        kinds: list[tuple[tuple[str, ...], bool]] = [((), False), ((), True)]
        nameable = [*NAMES[:count], "ghost"]
        for length in range(1, len(nameable) + 1):
            kinds += [(names, False) for names in itertools.combinations(nameable, length)]
        for chosen in itertools.product(kinds, repeat=count):
            yield tuple(
                StepDef(NAMES[place], depends_on=names, isolated=isolated)
                for place, (names, isolated) in enumerate(chosen)
            )


@pytest.mark.requirement("PLN-04", "PLN-06", "PLN-26", "STP-17")
def test_agrees_on_every_small_graph() -> None:
    """The planners agree on all 39,000 cases of up to three steps.

    On the way: one more finished step never makes skip smaller.
    """
    checked = 0
    for graph in small_graphs():
        ids = [step.id for step in graph]
        skips: dict[frozenset[str], set[str]] = {}
        for length in range(len(ids) + 1):
            for done in itertools.combinations(ids, length):
                skips[frozenset(done)] = skip = set(assert_agrees(graph, snapshot_of(done)).skip)
                for step_id in done:
                    assert skips[frozenset(done) - {step_id}] <= skip
                checked += 1
    assert checked == 1 + 5 * 2 + 9**2 * 2**2 + 17**3 * 2**3


@pytest.mark.requirement("PLN-11", "PLN-15", "PLN-24", "ANO-12")
@settings(thorough, max_examples=500)
@given(graphs, done_sets)
def test_plan_is_a_partition_closed_under_predecessors(
    graph: tuple[StepDef, ...], done: tuple[str, ...]
) -> None:
    """Skip and run share out the graph, and doubt means run.

    No step is skipped that is not done or whose predecessor is not skipped, and nothing is called
    out of order that is not done.
    """
    plan = build_plan(graph, snapshot_of(done))
    kept = {step.id: step for step in reversed(graph) if step.id}
    order = list(dict.fromkeys(step.id for step in graph if step.id))
    assert sorted((*plan.skip, *plan.run)) == sorted(order)
    assert list(plan.skip) == [step_id for step_id in order if step_id in plan.skip]
    for step_id in plan.skip:
        assert step_id in done
        step = kept[step_id]
        if step.depends_on:
            assert set(step.depends_on) <= set(plan.skip)
        elif not step.isolated:
            assert set(order[: order.index(step_id)]) <= set(plan.skip)
    disordered = {a.step for a in plan.anomalies if a.kind is AnomalyKind.DONE_OUT_OF_ORDER}
    assert disordered == (set(done) & set(order)) - set(plan.skip)


@pytest.mark.requirement("PLN-26")
@settings(thorough, max_examples=500)
@given(graphs, done_sets, st.sampled_from([*NAMES, "ghost", ""]))
def test_more_done_never_skips_less(
    graph: tuple[StepDef, ...], done: tuple[str, ...], more: str
) -> None:
    """Adding an id to ``done`` never makes skip smaller."""
    before = build_plan(graph, snapshot_of(done))
    after = build_plan(graph, snapshot_of((*done, more)))
    assert set(before.skip) <= set(after.skip)


@pytest.mark.requirement("PLN-12", "PLN-13")
@settings(thorough, max_examples=500)
@given(graphs, st.data())
def test_a_consistent_graph_runs_in_graph_order(
    graph: tuple[StepDef, ...], data: st.DataObject
) -> None:
    """Where every named step stands before, run keeps the order of the graph."""
    order: list[StepDef] = []
    for step in {step.id: step for step in graph if step.id}.values():
        earlier = [other.id for other in order]
        named = [step_id for step_id in step.depends_on or () if step_id in earlier]
        order.append(replace(step, depends_on=named))
    done = data.draw(st.lists(st.sampled_from(NAMES)))
    plan = build_plan(order, snapshot_of(done))
    assert list(plan.run) == [step.id for step in order if step.id in plan.run]


@pytest.mark.requirement("PLN-28", "STP-10", "STP-11", "STP-16", "SNP-15")
@settings(thorough, max_examples=500)
@given(graphs, done_sets)
def test_runs_converge_whatever_happens_on_the_way(
    graph: tuple[StepDef, ...], done: tuple[str, ...]
) -> None:
    """With a crash after every step, the run still comes to its end.

    Each incarnation runs one step of its plan and commits it. A well-formed graph ends with nothing
    to run; otherwise exactly the steps that can never be trusted are left, and they are what the
    check of the graph points at.
    """
    ids = {step.id for step in graph if step.id}
    plan = build_plan(graph, snapshot_of(done))
    executed: dict[str, int] = {}
    for _ in range(2 * len(ids) + 1):
        if not plan.run:
            break
        unfinished = [step_id for step_id in plan.run if step_id not in executed] or [plan.run[0]]
        executed[unfinished[0]] = executed.get(unfinished[0], 0) + 1
        plan = build_plan(graph, snapshot_of((*plan.skip, *executed)))
    hopeless = set(build_plan(graph, snapshot_of(tuple(ids))).run)
    assert set(plan.run) == hopeless
    incurable = {DefectKind.DANGLING_DEPENDENCY, DefectKind.CYCLE, DefectKind.IMPLIED_CYCLE}
    found = [defect for defect in check_graph(graph) if defect.kind in incurable]
    assert bool(found) == bool(hopeless)
    assert {step_id for d in found for step_id in d.steps or (d.step,)} <= hopeless


@pytest.mark.requirement("STP-17", "PLN-14")
@pytest.mark.parametrize("lead", range(5))
def test_several_cycles_with_positions_keep_their_order(lead: int) -> None:
    """Cycles in a row, with bystanders between, stay in a row."""
    graph: list[StepDef] = [StepDef(f"i{n}", isolated=True) for n in range(lead)]
    for n in range(6):
        graph += [
            StepDef(f"b{n}", depends_on=[f"c{n}"]),
            StepDef(f"x{n}", isolated=True),
            StepDef(f"y{n}", depends_on=[f"z{n}", f"x{n}"]),
            StepDef(f"c{n}"),
            StepDef(f"z{n}", depends_on=["i0"] if lead else ["x0"]),
        ]
    plan = assert_agrees(graph, None)
    assert [s for s in plan.run if s[0] == "c"] == [f"c{n}" for n in range(6)]


@pytest.mark.requirement("STP-16", "STP-17", "AMB-9")
@pytest.mark.parametrize(
    ("graph", "run"),
    [
        # c leaves b, which names it; position would hold c back, but not within the cycle
        ("a b<c c d", "a c b d"),
        # x and j name each other and draw p in; c, of another cycle, still waits for the late j
        ("x<j p b<c j<x,p,k c k!", "x p k j c b"),
        # the ring a, b, c is also reached by the position of d: one implied cycle around it
        ("a<b b<c c<a,d d", "a b d c"),
        # a bystander inside the stretch of a cycle comes first if it can, and d waits for it
        ("a<d x<y y! d", "y x d a"),
        ("a<d x<y d y!", "y x d a"),
    ],
)
def test_order_around_cycles(graph: str, run: str) -> None:
    """Inside a cycle the order follows from where it is broken, outside it is the usual one."""
    assert list(assert_agrees(parse_graph(graph), None).run) == run.split()
