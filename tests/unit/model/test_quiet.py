"""What users are told of a worker that does not become quiet."""

from __future__ import annotations

from harness.model.errors import DeadlineError
from harness.model.quiet import describe_end, describe_wait
from harness.model.trace import Death


def test_a_worker_that_ends_though_it_has_a_quiet_point_hears_of_it() -> None:
    """It said that the worker exited with code 0, and nothing of what is wrong with that."""
    said = describe_end(Death(0, 0), "worker.idle.before")
    assert said.startswith("exited with code 0; ")
    assert "worker.idle.before" in said
    assert "has no quiet_at" in said


def test_another_end_is_said_as_it_is() -> None:
    """A failure or a kill has nothing to do with the quiet point."""
    assert describe_end(Death(0, 1), "worker.idle.before") == "exited with code 1"
    assert describe_end(Death(9, -1), "worker.idle.before") == "killed by SIGKILL"
    assert describe_end(Death(0, 0), "") == "exited with code 0"


def test_a_worker_that_never_ends_hears_of_quiet_at() -> None:
    """The message of the deadline said only that the worker did not end."""
    said = str(DeadlineError(describe_wait(""), 10.0))
    assert said.startswith("waited 10 s in vain for the worker to end; ")
    assert "needs quiet_at in its scenario" in said
    assert "worker.idle.before" in str(DeadlineError(describe_wait("worker.idle.before"), 10.0))
