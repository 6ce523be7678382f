"""Which request is struck, and plans that contradict themselves."""

from __future__ import annotations

import pytest

from harness.model.errors import UnknownNameError, UsageError
from harness.world.wire_faults import Fault, FaultPlan


def test_a_fault_is_at_its_request_alone() -> None:
    """Kind, key and number all have to fit."""
    plan = FaultPlan(
        (Fault("refused", "poll", "a"), Fault("reply_lost", "poll", "a", 2)), ("poll", "create")
    )
    assert plan.at("poll", "a", 1) == "refused"
    assert plan.at("poll", "a", 2) == "reply_lost"
    for other in (("poll", "a", 3), ("poll", "b", 1), ("create", "a", 1)):
        assert plan.at(*other) is None


def test_a_request_that_the_service_does_not_know_is_named() -> None:
    """An unknown request is refused with the nearest known one."""
    with pytest.raises(UnknownNameError, match="did you mean 'poll'"):
        FaultPlan((Fault("refused", "pol", "a"),), ("poll", "create"))
    with pytest.raises(UnknownNameError, match="did you mean 'refused'"):
        FaultPlan((Fault("refuse", "poll", "a"),), ("poll",))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "faults",
    [
        (Fault("refused", "poll", "a", 0),),
        (Fault("refused", "poll", "a"), Fault("reply_lost", "poll", "a")),
    ],
)
def test_what_cannot_happen_is_a_usage_error(faults: tuple[Fault, ...]) -> None:
    """A fault that could never fire is refused, not left out."""
    with pytest.raises(UsageError, match="Fault"):
        FaultPlan(faults, ("poll",))
