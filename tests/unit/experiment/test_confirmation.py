"""What does not hold is believed when two runs that shared nothing agree; else it is flaky."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest
from harness_doubles import broken, hit, hits, result

from harness.experiment.confirmation import Attempt, confirmed, first_difference
from harness.model.result import Verdict
from harness.model.schedule import CONTROL, parse

if TYPE_CHECKING:
    from harness.model.result import ExperimentResult

STRUCK = parse("order.charge.after=kill")
HELD = result(STRUCK, [hits("order.charge.after"), hits("order.charge.before")])
TWICE = broken(STRUCK, "no-effect-twice")
LOST = broken(STRUCK, "every-command-has-effect")
HUNG = result(STRUCK, verdict=Verdict.HUNG, note="waited in vain")
CONTROL_HELD = result(CONTROL, [hits("order.charge.after")])


IN_A_THREAD = result(CONTROL, [[replace(hit("order.charge.after"), thread=True)]])


@dataclass
class Runs:
    """Comes to what it is told, one run after the other.

    Attributes:
        results: What the runs come to, the first first.
        shared: Whether the first run used what others had found.
        kept: What the runs were said to repeat, so that what they left would be kept.
        alone: Whether each run was to share nothing.
    """

    results: list[ExperimentResult]
    shared: bool = False
    kept: list[ExperimentResult | None] = field(default_factory=list)
    alone: list[bool] = field(default_factory=list)

    def __call__(self, *, alone: bool, repeats: ExperimentResult | None) -> Attempt:
        """Run once."""
        self.alone.append(alone)
        self.kept.append(repeats)
        return Attempt(self.results.pop(0), self.shared and not alone)


def test_what_held_is_run_once() -> None:
    """A pass costs no second run."""
    runs = Runs([HELD])
    assert confirmed(runs) is HELD
    assert runs.alone == [False]


@pytest.mark.parametrize("found", [TWICE, HUNG])
def test_what_did_not_hold_is_run_again_alone(found: ExperimentResult) -> None:
    """What is reported was seen twice, and what the second run left is kept."""
    runs = Runs([found, replace(found, seed=1)])
    assert confirmed(runs).seed == 1
    assert (runs.alone, runs.kept) == ([False, True], [None, found])


def test_what_used_the_finds_of_others_is_seen_twice_without_them() -> None:
    """A run that shared something confirms nothing: two more share nothing, and they agree."""
    runs = Runs([TWICE, TWICE, TWICE], shared=True)
    assert confirmed(runs) == TWICE
    assert (runs.alone, runs.kept) == ([False, True, True], [None, None, TWICE])


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("first", "second"), [(TWICE, HELD), (TWICE, LOST), (HUNG, TWICE)])
def test_what_comes_out_differently_is_flaky(
    first: ExperimentResult, second: ExperimentResult, *, shared: bool
) -> None:
    """Another verdict or other oracles: neither a failure nor a pass, with both histories."""
    found = confirmed(Runs([first, second], shared=shared))
    assert (found.verdict, found.violations, found.fingerprint) == (Verdict.FLAKY, (), "")
    head, one, other, *_ = found.note.splitlines()
    assert head == "run twice, the same schedule came out differently"
    for line, run in ((one, first), (other, second)):
        assert f": {run.verdict}" in line
        assert all(f"{v.oracle}: {v.message}" in line for v in run.violations)


def test_a_third_run_can_still_show_it_flaky() -> None:
    """The two runs that count are those that shared nothing."""
    found = confirmed(Runs([TWICE, TWICE, HELD], shared=True))
    assert found.verdict is Verdict.FLAKY


@pytest.mark.parametrize("third", [IN_A_THREAD, replace(IN_A_THREAD, verdict=Verdict.HUNG)])
def test_the_control_leg_of_a_worker_with_threads_is_run_three_times(
    third: ExperimentResult,
) -> None:
    """Everything is judged beside the control leg, so it must come out alike."""
    runs = Runs([IN_A_THREAD, IN_A_THREAD, third])
    wanted = Verdict.HELD if third is IN_A_THREAD else Verdict.FLAKY
    assert confirmed(runs).verdict is wanted
    assert runs.results == []


def test_the_control_leg_of_any_other_worker_is_run_once() -> None:
    """Without threads the trace is the same each time."""
    assert confirmed(Runs([CONTROL_HELD])) is CONTROL_HELD


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ([hits("a.b.before")], [hits("a.b.before")], "the traces do not differ"),
        (
            [hits("a.b.before"), hits("a.b.before", "a.c.before")],
            [hits("a.b.before"), (hit("a.b.before"), hit("a.b.after", o="1"))],
            "the traces first differ in incarnation 2, hit 2: a.c.before#1, then a.b.after[o=1]#1",
        ),
        (
            [hits("a.b.before")],
            [hits("a.b.before", "a.c.before")],
            "the traces first differ in incarnation 1, hit 2: none, then a.c.before#1",
        ),
        ([hits("a.b.before")] * 2, [hits("a.b.before")], "only the first run had an incarnation 2"),
    ],
)
def test_where_the_traces_first_differ(
    first: list[tuple[object, ...]], second: list[tuple[object, ...]], said: str
) -> None:
    """A reader of a flaky schedule begins where the two histories part."""
    one = result(STRUCK, first)  # type: ignore[arg-type]
    other = result(STRUCK, second)  # type: ignore[arg-type]
    assert first_difference(one.incarnations, other.incarnations) == said
