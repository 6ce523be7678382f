"""The worker's domain: errors, commands, states, progress, decisions, registration."""

from __future__ import annotations

import itertools
import json

import pytest

from worker_under_test.domain.artifact import ArtifactSet, check_file_name
from worker_under_test.domain.attempt import UNFINISHED, AttemptState, require_transition
from worker_under_test.domain.command import MAX_BODY_CHARS, parse_command
from worker_under_test.domain.errors import (
    DeliveryError,
    DomainError,
    Kind,
    kind_of,
    retryable_delivery,
)
from worker_under_test.domain.event import AttemptEvent, EventKind
from worker_under_test.domain.progress import Progress
from worker_under_test.domain.recovery import Decision, Proposal, RecoveryPolicy, decide
from worker_under_test.domain.registration import NodeInventory, Registration

AUTH = (Kind.UNAUTHENTICATED, Kind.FORBIDDEN)


def chained(*links: Exception) -> Exception:
    """Chain errors, the outermost first."""
    for outer, inner in itertools.pairwise(links):
        outer.__cause__ = inner
    return links[0]


@pytest.mark.requirement("DEL-01", "DEL-03..DEL-06")
@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("kind", [None, *Kind])
@pytest.mark.parametrize("layers", [0, 1, 4])
@pytest.mark.parametrize("mark_outside", [True, False])
def test_only_a_marked_error_of_no_auth_kind_is_retryable(
    marked: bool, kind: Kind | None, layers: int, mark_outside: bool
) -> None:
    """The whole truth table is tried, at every depth of wrapping and in both orders."""
    parts: list[Exception] = [DeliveryError("mark")] if marked else []
    parts.extend([DomainError(kind, "kind")] if kind else [ConnectionError("plain")])
    if not mark_outside:
        parts.reverse()
    error = chained(*(RuntimeError("wrapping") for _ in range(layers)), *parts)
    assert retryable_delivery(error) is (marked and kind not in AUTH)
    assert kind_of(error) == kind


@pytest.mark.requirement("DEL-08", "DEL-10")
def test_a_group_is_retryable_only_if_every_member_is() -> None:
    """A delivery joined with a local error is not retryable, and None is not."""
    delivery = chained(DeliveryError("mark"), ConnectionError("cut"))
    local = OSError("disk")
    assert retryable_delivery(ExceptionGroup("flush", [delivery, delivery]))
    assert not retryable_delivery(ExceptionGroup("flush", [delivery, local]))
    assert not retryable_delivery(chained(DeliveryError("mark"), ExceptionGroup("flush", [local])))
    assert not retryable_delivery(None)


GOOD = {"command_id": "c1", "capability": "compute", "version": 1, "payload": {"a": [1, None]}}


@pytest.mark.requirement("INB-12")
def test_a_command_is_read_and_its_digest_ignores_order_and_id() -> None:
    """The digest is of the content, not of its spelling and not of the identity."""
    one = parse_command(json.dumps(GOOD))
    other = parse_command(json.dumps(dict(reversed({**GOOD, "command_id": "c2"}.items()))))
    assert one.digest == other.digest
    assert parse_command(json.dumps({**GOOD, "version": 2})).digest != one.digest


@pytest.mark.requirement("INB-13")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        '{"command_id": "c1", "capability": "x", "version": 1, "payload": {"n": NaN}}',
        '{"command_id": "c1", "capability": "x", "version": 1, "payload": {"n": 1e999}}',
        r'{"command_id": "c1", "capability": "x", "version": 1, "payload": {"n": "\ud800"}}',
        r'{"command_id": "\ud800", "capability": "x", "version": 1, "payload": {}}',
        " " * (MAX_BODY_CHARS + 1),
        *(
            json.dumps({**GOOD, key: value})
            for key, value in [
                ("command_id", ""),
                ("command_id", "  "),
                ("command_id", 7),
                ("command_id", "x" * 201),
                ("command_id", "a\nb"),
                ("capability", ""),
                ("capability", None),
                ("version", 0),
                ("version", True),
                ("version", "1"),
                ("version", 1.0),
                ("version", 1 << 31),
                ("payload", None),
                ("payload", []),
            ]
        ),
    ],
)
def test_a_malformed_command_is_refused(text: str) -> None:
    """Whatever is wrong with it, it is one kind of error."""
    with pytest.raises(DomainError) as refusal:
        parse_command(text)
    assert refusal.value.kind is Kind.INVALID


MAY_FOLLOW = {
    "PENDING": "RUNNING FAILED CANCELLED",
    "RUNNING": "RECOVERING SUCCEEDED FAILED CANCELLED UNKNOWN",
    "RECOVERING": "RECOVERING RUNNING FAILED CANCELLED UNKNOWN",
}
"""Which states may follow which, written down a second time; nothing follows the others."""


@pytest.mark.requirement("ATT-09", "ATT-10")
@pytest.mark.parametrize("new", AttemptState)
@pytest.mark.parametrize("old", AttemptState)
def test_only_the_steps_of_the_life_cycle_are_taken(old: AttemptState, new: AttemptState) -> None:
    """Each pair of states is tried; nothing leaves a terminal state."""
    if new in MAY_FOLLOW.get(old, "").split():
        require_transition(old, new)
    else:
        with pytest.raises(DomainError) as refusal:
            require_transition(old, new)
        assert refusal.value.kind is Kind.CONFLICT
    assert (old in UNFINISHED) == (old in MAY_FOLLOW)


@pytest.mark.requirement("CAP-04")
def test_progress_has_its_json_names() -> None:
    """The names in JSON are those of the package, ``stage_status`` among them."""
    assert Progress("copy", "running", 40, 2, 5, 1).to_json() == {
        "stage": "copy",
        "stage_status": "running",
        "progress": 40,
        "completed": 2,
        "total": 5,
        "failed": 1,
    }


@pytest.mark.requirement("CAP-05")
@pytest.mark.parametrize("percent", [-1, 101, True, 50.0])
def test_progress_out_of_range_is_refused(percent: int) -> None:
    """Numbers out of range are refused, and so are a boolean and a float."""
    with pytest.raises(DomainError):
        Progress("s", "running", percent)


@pytest.mark.requirement("CAP-05")
@pytest.mark.parametrize("counts", [(-1, 1, 0), (1, 0, 0), (2, 3, 2), (0, 0, -1)])
def test_counts_out_of_range_are_refused(counts: tuple[int, int, int]) -> None:
    """Negative counts, and more done than there is, are refused."""
    with pytest.raises(DomainError):
        Progress("s", "running", 0, *counts)


@pytest.mark.requirement("CAP-05")
def test_progress_at_its_bounds_is_accepted() -> None:
    """0 and 100 are in range."""
    assert Progress("s", "running", 0).progress == 0
    assert Progress("s", "done", 100, 1, 2, 1).progress == 100


@pytest.mark.requirement("REC-01", "REC-02", "REC-14", "REC-15")
@pytest.mark.parametrize(
    ("state", "policy", "decision"),
    [
        (AttemptState.PENDING, RecoveryPolicy.RECOMPUTE, Decision.START),
        (AttemptState.PENDING, None, Decision.START),
        (AttemptState.RUNNING, RecoveryPolicy.RECOMPUTE, Decision.RECOMPUTE),
        (AttemptState.RUNNING, RecoveryPolicy.RESUME, Decision.RESUME),
        (AttemptState.RUNNING, None, Decision.UNKNOWN),
        (AttemptState.RECOVERING, RecoveryPolicy.RESUME, Decision.RESUME),
        (AttemptState.RECOVERING, None, Decision.UNKNOWN),
    ],
)
def test_the_decision_follows_the_policy(
    state: AttemptState, policy: RecoveryPolicy | None, decision: Decision
) -> None:
    """The capability is asked, and only about what had begun."""
    asked = []

    def propose() -> Proposal:
        asked.append(policy)
        return Proposal(decision, "so it is declared")

    assert decide(state, policy, propose).decision is decision
    assert bool(asked) == (state is not AttemptState.PENDING and policy is not None)


@pytest.mark.requirement("REG-01", "REG-04", "REG-05")
@pytest.mark.parametrize(
    "fields", [("", "n", "d"), ("i", "", "d"), ("i", "n", ""), ("", "", ""), (" ", "n", "d")]
)
def test_a_registration_without_identity_is_refused_first(fields: tuple[str, str, str]) -> None:
    """The identity is checked before the CPU; blanks are refused too."""
    with pytest.raises(DomainError, match=r"^Worker 注册信息缺少实例、名称或 Node$") as refusal:
        Registration(*fields, NodeInventory(0)).validate()
    assert refusal.value.kind is Kind.INVALID
    assert str(refusal.value.__cause__) == "worker instance ID, name, and node ID are required"


@pytest.mark.requirement("REG-02")
@pytest.mark.parametrize("millis", [-1, 0])
def test_a_registration_without_cpu_is_refused(millis: int) -> None:
    """A capacity below 1 is refused."""
    with pytest.raises(DomainError, match=r"^Worker CPU 资源采集不可用$") as refusal:
        Registration("i", "n", "d", NodeInventory(millis)).validate()
    assert refusal.value.kind is Kind.INVALID
    assert str(refusal.value.__cause__) == "worker CPU inventory is required"
    Registration("i", "n", "d", NodeInventory(1)).validate()


@pytest.mark.requirement("INV-12", "FIL-06")
@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/b", "a\\b", "/etc", ".hidden", "a\0b", "x.tmp", "é" * 51, "\ud800"],
)
def test_a_name_that_leaves_its_directory_is_refused(name: str) -> None:
    """Traversal, separators and the names of temporary files are refused."""
    with pytest.raises(DomainError):
        check_file_name(name)
    with pytest.raises(DomainError):
        ArtifactSet(name, "attempt-1")


@pytest.mark.requirement("ATT-08")
def test_a_body_that_cannot_be_sent_is_the_capabilitys_failure() -> None:
    """It is found when the result is made, not when it is saved or sent."""
    for value in (float("nan"), "\ud800"):
        with pytest.raises(ValueError, match=r".+"):
            AttemptEvent(EventKind.SUCCEEDED, {"value": value})
