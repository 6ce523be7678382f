"""Errors: the nearest name, and the way through a pipe."""

from __future__ import annotations

import importlib
import pickle
import pkgutil

import pytest

import harness
from harness.experiment.protocol import EndedError, NotQuietError, RestartError
from harness.experiment.rig import BoundReachedError
from harness.explore.stop_signals import StopRequestedError
from harness.images.tree import TooLargeError, UnimageableError
from harness.model.errors import (
    DeadlineError,
    HarnessError,
    ProcessLostError,
    UnknownNameError,
    UsageError,
)
from harness.model.result import Verdict
from harness.model.schedule import MalformedLabelError
from harness.processes.incarnation import ForeignStopError
from harness.processes.supervisor import WarmUpError
from harness.processes.trace_reader import DamagedTraceError
from harness.record.journal_content import NotBegunError
from harness.scenario_fields import WorkloadError

EVERY = [
    HarnessError("a"),
    UsageError("b"),
    UnknownNameError("oracle", "nme", ["name", "other"]),
    UnknownNameError("oracle", "name", []),
    DeadlineError("a reply", 2.5),
    ForeignStopError("c"),
    RestartError("d"),
    ProcessLostError("the lane", "was killed by SIGKILL"),
    MalformedLabelError("a.b", ["a.b.mid"], "here: ", "!"),
    StopRequestedError(15),
    UnimageableError("f"),
    DamagedTraceError("g"),
    EndedError(Verdict.NOT_FIRED, "e"),
    NotQuietError(Verdict.HUNG, "h"),
    RestartError("i", Verdict.HUNG),
    BoundReachedError("j"),
    TooLargeError("k"),
    WarmUpError("l"),
    WorkloadError("m"),
    NotBegunError("n"),
]


@pytest.mark.parametrize(
    ("name", "known", "nearest"),
    [
        ("refernce", ["reference", "orders"], "reference"),
        ("smok", ["deep", "full", "smoke"], "smoke"),
        ("SMOKE", ["deep", "full", "smoke"], "smoke"),
        ("unkown_sent_agian", ["unknown-sent-again", "x"], "unknown-sent-again"),
        ("a", (each for each in ("bb", "bb", "aa")), "aa"),
    ],
)
def test_an_unknown_name_comes_with_the_nearest(name: str, known: list[str], nearest: str) -> None:
    """Where a known name is near, it is in the message."""
    error = UnknownNameError("thing", name, known)
    assert str(error) == f"unknown thing {name!r}; did you mean {nearest!r}?"
    assert isinstance(error, UsageError)


def test_a_far_name_is_not_suggested() -> None:
    """It said: unknown scenario 'no-such-scenario'; did you mean 'unknown-sent-again'?"""
    many = [f"unknown-sent-again-{n}" for n in range(20)]
    assert str(UnknownNameError("scenario", "no-such-scenario", many)) == (
        "unknown scenario 'no-such-scenario'"
    )
    assert str(UnknownNameError("tier", "quick", ["smoke", "deep", "full"])) == (
        "unknown tier 'quick'; known: 'deep', 'full', 'smoke'"
    )


def test_an_unknown_name_where_there_is_none() -> None:
    """With nothing to suggest, that is what is said."""
    error = UnknownNameError("thing", "a", ())
    assert str(error) == "unknown thing 'a'; there is no thing at all"


def test_the_known_names_are_sorted_and_each_is_there_once() -> None:
    """The message does not depend on the order of a set."""
    assert UnknownNameError("thing", "a", {"c", "b"}).known == ("b", "c")
    assert UnknownNameError("thing", "a", ["c", "b", "c"]).known == ("b", "c")


def test_a_missed_deadline_says_what_and_how_long() -> None:
    """Every wait has a deadline, and its message says which one it was."""
    assert str(DeadlineError("a reply", 2.0)) == "waited 2 s in vain for a reply"


@pytest.mark.parametrize("error", EVERY, ids=lambda error: type(error).__name__)
def test_an_error_comes_through_a_pipe_as_it_was(error: HarnessError) -> None:
    """A lane answers with errors through a pipe: kind, message and attributes stay."""
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_every_error_of_the_harness_is_tried_here() -> None:
    """A new kind of error must come through a pipe too."""
    for module in pkgutil.walk_packages(harness.__path__, "harness."):
        importlib.import_module(module.name)
    known = {HarnessError}
    fresh = [HarnessError]
    while fresh:
        fresh = [kind for each in fresh for kind in each.__subclasses__()]
        known.update(fresh)
    own = {kind for kind in known if kind.__module__.startswith("harness.")}
    assert own == {type(error) for error in EVERY}
