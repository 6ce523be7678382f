"""Bounds of a worker: what they may be, and how a worker that has reached one is told."""

from __future__ import annotations

import signal

import pytest

from harness.model.bounds import Bounds, bound_of_failure
from harness.model.errors import UsageError
from harness.model.trace import Death

FAILED = Death(0, 1)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, float("inf"), "1", None, 1 << 40])
def test_a_bound_is_a_whole_number(value: object) -> None:
    """A bound that the kernel cannot be told is refused where it is written."""
    with pytest.raises(UsageError, match="processes"):
        Bounds(processes=value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("death", "output", "bound"),
    [
        (FAILED, "Traceback\nMemoryError", "memory_mib"),
        (FAILED, "RuntimeError: can't start new thread", "memory_mib"),
        (FAILED, "OSError: [Errno 24] Too many open files: 'x'", "open_files"),
        (FAILED, "OSError: [Errno 27] File too large", "file_mib"),
        (Death(signal.SIGXFSZ, -1, True), "", "file_mib"),
    ],
)
def test_the_bound_that_a_worker_has_reached_is_named(
    death: Death, output: str, bound: str
) -> None:
    """Without that, it is an error of the worker like any other."""
    told = bound_of_failure(death, output, Bounds(**{bound: 17}))
    assert told.startswith(f"bounds: {bound} ")
    assert "17" in told
    assert f"Bounds({bound}=...)" in told


def test_any_other_failure_is_no_bound() -> None:
    """A reader is not sent to look where nothing is wrong."""
    assert not bound_of_failure(FAILED, "MyMemoryErrors: none", Bounds())
