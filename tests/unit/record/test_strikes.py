"""The neighbours of a strike: of several things at once those of the same one."""

from __future__ import annotations

from dataclasses import replace

from harness_doubles import broken, hit, result, scenario

from harness.model.result import Fired, Violation
from harness.model.schedule import Moment, parse
from harness.moments.catalogue import Catalogue, DeclaredPoint
from harness.record.outcome import ScenarioOutcome
from harness.record.strikes import strike_row

AT = parse("save.do.after#1=kill")
FIRED = Fired(Moment("save.do.after", ordinal=1), 1)
STRUCK = hit("save.do.after", 1, command="c1", event="end")
BEFORE = (hit("save.do.before", 1, command="c1"), hit("send.do.before", 1, command="c2"))


def _row(*, before: tuple[object, ...], after: tuple[object, ...]) -> tuple[list[str], str]:
    failure = replace(
        broken(AT, "first"),
        fired=(FIRED,),
        incarnations=result(AT, [[*before, STRUCK]]).incarnations,  # type: ignore[list-item]
    )
    control = result(incarnations=[[*before, STRUCK, *after]])  # type: ignore[list-item]
    outcome = ScenarioOutcome(scenario(), Catalogue([]), (control, failure), whole=True)
    row = strike_row(FIRED, failure, outcome)
    return row["passed"], row["next_in_control"]


def test_neighbours_are_those_of_the_same_subject() -> None:
    """A strike at c1 is between points of c1, whatever another command did meanwhile."""
    after = (hit("send.do.after", 1, command="c2"), hit("save.end.after", 1, command="c1"))
    assert _row(before=BEFORE, after=after) == (
        ["save.do.before[command=c1]"],
        "save.end.after[command=c1]",
    )


def test_one_shared_word_is_not_the_same_subject() -> None:
    """Two events of one kind for two commands are two subjects."""
    other = hit("send.do.before", 1, event="end", command="c2")
    passed, _ = _row(before=(*BEFORE, other), after=())
    assert passed == ["save.do.before[command=c1]"]


def test_without_the_same_subject_the_nearest_points_are_named() -> None:
    """Something is said in any case."""
    assert _row(before=BEFORE[1:], after=(hit("idle.do.after"),)) == (
        ["send.do.before[command=c2]"],
        "idle.do.after",
    )
    assert _row(before=(), after=()) == ([], "")


def test_the_place_is_that_of_what_broke() -> None:
    """A worker was struck at a point of one command, and another one was lost."""
    points = Catalogue(
        [
            DeclaredPoint(label, "worker.py", line)
            for line, label in enumerate(("save.do.after", "send.do.before", "send.do.after"), 1)
        ]
    )
    after = (
        hit("save.end.after", 1, command="c1"),
        hit("send.do.after", 1, command="c2"),
    )
    failure = replace(
        broken(AT, "first"),
        fired=(FIRED,),
        incarnations=result(AT, [[*BEFORE, STRUCK]]).incarnations,
        violations=(Violation("first", "command 'c2' never had its effect"),),
    )
    control = result(incarnations=[[*BEFORE, STRUCK, *after]])
    row = strike_row(
        FIRED, failure, ScenarioOutcome(scenario(), points, (control, failure), whole=True)
    )
    assert row["moment"] == "save.do.after#1"
    assert row["passed"] == ["send.do.before[command=c2]"]
    assert row["next_in_control"] == "send.do.after[command=c2]"
    assert row["line"] == 3
