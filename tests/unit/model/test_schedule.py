"""Schedules: values, their text, and what is no schedule."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import UnknownNameError, UsageError
from harness.model.schedule import (
    CONTROL,
    MalformedLabelError,
    Moment,
    Schedule,
    Strike,
    parse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

WORDS = st.sampled_from(["a", "ack", "mark_sent", "_a_", "2nd", "before", "s3"])
LABELS = st.builds(
    lambda *words: ".".join(words), WORDS, WORDS, st.sampled_from(["before", "after", "mid"])
)
KEYS = st.sampled_from(["k", "K", "_", "command_id", "part2"])
VALUES = st.text(st.sampled_from("]\\,/=#[ \n\t'\"é\u2028\U0001f600ab")) | st.text()
ORDINALS = st.integers(1, 999_999_999) | st.integers(1, 3)
MOMENTS = st.builds(Moment, LABELS, ORDINALS) | st.builds(Moment, LABELS, ORDINALS, KEYS, VALUES)
SCHEDULES = st.builds(
    Schedule,
    st.lists(
        st.lists(st.builds(Strike, MOMENTS), min_size=1, max_size=3).map(tuple), max_size=4
    ).map(tuple),
)


@given(SCHEDULES)
def test_the_printed_form_parses_back_to_the_same_value(schedule: Schedule) -> None:
    """What is printed is read back as the same value."""
    assert parse(str(schedule)) == schedule


def test_the_documented_example_is_two_lives() -> None:
    """``/`` starts the next incarnation, and ``#1`` is what is meant."""
    schedule = parse("ack.send.before#1=kill / recovery.scan.before=kill")
    assert schedule == Schedule(
        ((Strike(Moment("ack.send.before", 1)),), (Strike(Moment("recovery.scan.before", 1)),))
    )
    assert str(schedule) == "ack.send.before#1=kill / recovery.scan.before#1=kill"


def test_a_comma_joins_the_faults_of_one_life() -> None:
    """A comma joins faults, and `moments` are in the order of the text."""
    schedule = parse("a.b.before=kill, a.b.after#2=kill / a.b.mid=kill")
    assert [len(life) for life in schedule.incarnations] == [2, 1]
    assert list(map(str, schedule.moments)) == ["a.b.before#1", "a.b.after#2", "a.b.mid#1"]


def test_blanks_around_the_signs_mean_nothing() -> None:
    """Between the parts blanks are free; in a context value they count."""
    spaced = parse(" a.b.before [ command= c2 ] # 3 = kill ,\n\ta.b.after = kill/a.b.mid=kill ")
    assert spaced == parse("a.b.before[command= c2 ]#3=kill,a.b.after=kill/a.b.mid=kill")
    assert spaced.moments[0].value == " c2 "


@pytest.mark.parametrize("text", ["", " ", "\n\t "])
def test_blank_text_is_the_control_leg(text: str) -> None:
    """The control leg is the schedule without a strike."""
    assert parse(text) is CONTROL
    assert str(CONTROL) == ""
    assert CONTROL.moments == ()


def test_then_adds_a_life() -> None:
    """A schedule grows by one incarnation and does not change."""
    first = CONTROL.then(Moment("a.b.before"))
    second = first.then(Moment("a.b.after", 2))
    assert (str(first), str(second)) == (
        "a.b.before#1=kill",
        "a.b.before#1=kill / a.b.after#2=kill",
    )


def test_an_escape_is_for_the_bracket_and_for_itself() -> None:
    r"""In a value ``\]`` is a bracket and ``\\`` a backslash."""
    (moment,) = parse(r"a.b.before[k=x\]\\]=kill").moments
    assert moment.value == "x]\\"
    assert str(moment) == r"a.b.before[k=x\]\\]#1"


@pytest.mark.parametrize(
    ("text", "column", "wanted"),
    [
        ("=kill", 1, "a label"),
        ("a.b.before", 11, "'=' and a fault"),
        ("a.b.before=", 12, "a fault such as kill"),
        ("a.b.before=!", 12, "a fault such as kill"),
        ("a.b.before#=kill", 12, "a hit number from 1"),
        ("a.b.before#0=kill", 12, "a hit number from 1"),
        ("a.b.before#-1=kill", 12, "a hit number from 1"),
        ("a.b.before#01=kill", 12, "a hit number from 1"),
        ("a.b.before#1234567890=kill", 12, "a hit number from 1"),
        ("a.b.before#1.5=kill", 13, "'=' and a fault"),
        ("a.b.before[=c]=kill", 12, "a context key"),
        ("a.b.before[1=c]=kill", 12, "a context key"),
        ("a.b.before[k]=kill", 13, "'=' and a context value"),
        ("a.b.before[k=c", 15, "']'"),
        ("a.b.before[k=c\\]=kill", 22, "']'"),
        (r"a.b.before[k=\x]=kill", 15, r"'\' or ']' after '\'"),
        ("a.b.before[k=\\", 15, r"'\' or ']' after '\'"),
        ("a.b.before=kill /", 18, "a label"),
        ("a.b.before=kill / / a.b.after=kill", 19, "a label"),
        ("/ a.b.before=kill", 1, "a label"),
        ("a.b.before=kill,", 17, "a label"),
        ("a.b.before=kill a.b.after=kill", 17, "'/' , ',' or the end"),
        ("a.b.before=kill;", 16, "'/' , ',' or the end"),
        ("a.b.before[k=c]d=kill", 16, "'=' and a fault"),
    ],
)
def test_bad_text_is_shown_with_the_place(text: str, column: int, wanted: str) -> None:
    """What is not a schedule is a usage error that points at the column."""
    with pytest.raises(UsageError) as caught:
        parse(text)
    message, shown, caret = str(caught.value).split("\n")
    assert message == f"schedule, column {column}: expected {wanted}" or message.startswith(
        f"schedule, column {column}: expected {wanted} such as"
    )
    assert shown == f"  {text}"
    assert caret == " " * (column + 1) + "^"


@pytest.mark.parametrize("label", ["a.before", "a.b.c.before", "a.b.later", "kill", "a-b-mid"])
def test_a_malformed_label_is_refused_with_its_place(label: str) -> None:
    """The message says what a label looks like, and where the wrong one stands."""
    with pytest.raises(MalformedLabelError) as caught:
        parse(f"a.b.mid=kill / {label}=kill")
    assert str(caught.value) == (
        f"schedule, column 16: label {label!r} must match noun.step.(before|after|mid)\n"
        f"  a.b.mid=kill / {label}=kill\n{' ' * 17}^"
    )


@pytest.mark.parametrize(
    ("label", "known", "right"),
    [
        ("ack.send.befor", (), "ack.send.before"),
        ("ack.send.aftr", (), "ack.send.after"),
        ("ack.send.befor", ("ack.send.before", "ack.sent.after"), "ack.send.before"),
        ("akc.send.befor", ("ack.send.after", "ack.send.before"), "ack.send.before"),
        ("Ack.send.before", ("ack.send.before",), "ack.send.before"),
        ("ack-send-before", ("ack.send.before",), "ack.send.before"),
        ("ack.sendbefore", ("ack.send.before",), "ack.send.before"),
    ],
)
def test_whichever_part_of_a_label_is_misspelt_the_nearest_is_suggested(
    label: str, known: tuple[str, ...], right: str
) -> None:
    """A label misspelt in its side got no suggestion."""
    with pytest.raises(MalformedLabelError, match=f"; did you mean '{re.escape(right)}'"):
        parse(f"{label}#1=kill", known)


def test_known_labels_are_read_only_for_a_malformed_one() -> None:
    """They may take a scan of the worker's source."""
    read = []

    def labels() -> Iterator[str]:
        read.append("read")
        yield "a.b.before"

    parse("a.b.mid=kill", labels())
    assert not read
    with pytest.raises(MalformedLabelError):
        parse("a.b.md=kill", labels())
    assert read


@pytest.mark.parametrize("fault", ["kil", "kills", "KILL", "skill"])
def test_an_unknown_fault_gives_the_nearest(fault: str) -> None:
    """An unknown fault is an error with the nearest known one."""
    with pytest.raises(UnknownNameError, match=f"unknown fault '{fault}'; did you mean 'kill'"):
        parse(f"a.b.before={fault}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.b",), "must match noun"),
        (("a.b.before", 0), "counted from 1 to 999999999, not 0"),
        (("a.b.before", -1), "counted from 1 to 999999999, not -1"),
        (("a.b.before", 1, "not a name", "x"), "is not a name"),
        (("a.b.before", 1, "k\n", "x"), "is not a name"),
        (("a.b.before", 1, "", "x"), "has no key"),
    ],
)
def test_a_moment_that_could_not_be_printed_is_refused(
    arguments: tuple[str, int, str, str], message: str
) -> None:
    """There is no value that its text could not show."""
    with pytest.raises(UsageError, match=message):
        Moment(*arguments)


def test_a_life_without_a_strike_is_refused() -> None:
    """The text cannot show an incarnation without a strike."""
    with pytest.raises(UsageError, match="without a strike"):
        Schedule(((), (Strike(Moment("a.b.before")),)))
