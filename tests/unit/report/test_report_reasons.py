"""Why a promise broke, in words made from the record: what was known of the subject, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.sample_records import failure_record
from harness.report.diagnosis import why
from harness.report.timeline_svg import control_timeline, timeline
from harness.report.view_model import change, contract, happened

if TYPE_CHECKING:
    from harness.record.failure_schema import FailureRecord


@pytest.fixture
def record() -> FailureRecord:
    """Return a failure by one crash, whose promise is about ``o1``."""
    record = failure_record()
    del record["strikes"][1:]
    for row in record["history"]:
        if row["incarnation"] > 1 and row["what"] == "struck":
            row["what"] = "point"
    return record


def test_what_the_world_and_the_disk_had_of_the_subject(record: FailureRecord) -> None:
    """Why it broke is said of the command that the broken promise names."""
    assert why(record) == (
        ("Killed", "after order.charge.before and before order.finish.after (order o1)"),
        ("World by then:", "command o1 acknowledged by session-1; charge o1 by worker-1"),
        ("Disk by then:", "inbox 1 row (new)"),
        ("World after that:", "charge o1 by worker-1"),
        ("Control leg:", "o1 ends up in outbox; here it does not"),
    )


def test_decision_about_an_attempt_at_the_subject_is_named(record: FailureRecord) -> None:
    """A decision speaks of attempts, a promise of commands; a row with both joins them."""
    record["states"][0]["tables"][0]["rows"] += [
        {"change": "added", "cells": ["a1", "o1", "running"], "before": []}
    ]
    reasons = dict(why(record))
    assert reasons["Recovery decided:"] == "restart, because it was running and has no checkpoint"


def test_subject_that_is_nowhere_on_disk_is_said_to_be_missing(record: FailureRecord) -> None:
    """The most telling state is an empty one."""
    record["states"][0]["tables"][0]["rows"] = []
    assert dict(why(record))["Disk by then:"] == "nothing of o1"


def test_words_that_only_begin_like_the_subject_are_others(record: FailureRecord) -> None:
    """``o1`` is neither ``o10`` nor ``o1-again``."""
    for row in record["history"]:
        row["text"] = row["text"].replace(" o1", " o10").replace("worker-1", "o1-again")
    assert "World by then:" not in dict(why(record))


def test_subject_of_the_strike_stands_in_for_a_promise_that_names_nothing(
    record: FailureRecord,
) -> None:
    """A promise about the whole state names nothing; the strike does."""
    record["violations"] = [{"oracle": "no-effect-twice", "message": "the state 'x' changed"}]
    assert dict(why(record))["Disk by then:"] == "inbox 1 row (new)"


def test_failure_without_a_strike_says_so(record: FailureRecord) -> None:
    """A control leg that breaks needs no crash."""
    record["strikes"] = []
    assert why(record) == (
        ("Without a strike", "it breaks in the control leg, so no crash is needed"),
    )
    assert happened(record) == "It ran without any fault."
    assert change(record)[0] == "Save the key of an effect before it happens."


def test_remedy_is_the_one_of_the_promise_that_comes_first(record: FailureRecord) -> None:
    """What to change comes from the oracle that the scenario is pinned by."""
    record["violations"].append({"oracle": "commands-end", "message": "o1 never ended"})
    record["promises"][0]["remedy"] = "Report every end."
    assert change(record)[0] == "Save the key of an effect before it happens."
    record["pin"] = "broken:commands-end"
    assert contract(record)[0].name == "commands-end"
    record["pin"] = "broken:commands-end@full"
    assert contract(record)[0].name == "commands-end"
    assert change(record) == (
        "Report every end.",
        "Look at what happens between order.charge.before and shop/orders.py:12.",
    )


def test_both_legs_are_drawn_at_the_same_places(record: FailureRecord) -> None:
    """The control leg stands beside the struck one, the missing strike marked."""
    struck, control = timeline(record), control_timeline(record)
    assert control is not None
    assert [lane.name for lane in control.lanes] == ["control leg", "disk", "world"]
    assert [(x, text) for x, text, _ in struck.strikes] == [(46, "✗ order.charge.after")]
    assert [(x, text) for x, text, _ in control.strikes] == [(46, "order.charge.after, not struck")]
    (disk,) = [mark for mark in control.marks if mark.kind == "disk"]
    assert disk.text == "durable at rest: outbox 1, inbox 1, 2 files"
    record["control"]["history"] = []
    assert control_timeline(record) is None
