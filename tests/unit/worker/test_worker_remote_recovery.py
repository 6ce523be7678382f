"""Remote capabilities on doubles: what the evidence decides, and what the outside then does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from malformed_doubles import NoTime, Saving
from network_doubles import FakeRemote
from planned_faults import network_failure
from test_worker_malformed_services import JOB, JOBS, RENDER

from worker_under_test.capabilities.compute import Compute
from worker_under_test.capabilities.notify import Notify
from worker_under_test.capabilities.render import LOOK_UPS, Render
from worker_under_test.domain.command import Command
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.event import EventKind
from worker_under_test.domain.progress import Checkpoint
from worker_under_test.domain.recovery import Decision
from worker_under_test.ports.remote import Reply

if TYPE_CHECKING:
    from worker_under_test.domain.event import AttemptEvent
    from worker_under_test.domain.json_value import JsonObject

NOTIFY = Command("n1", "notify", 1, {"channel": "n1", "text": "x"})
RUNNING: JsonObject = {"state": "running"}
DONE: JsonObject = {"state": "succeeded", "result": {"image": "i"}}
FOUND: JsonObject = {"jobs": [{"job_id": "job-1", "state": "running"}]}
NOTHING: JsonObject = {"jobs": []}


def request(*, idempotent: bool = False, lookup: bool = False, job_id: str = "") -> JsonObject:
    """Return evidence of a render."""
    return {
        "request_id": "render-attempt-1",
        "idempotent": idempotent,
        "lookup": lookup,
        "job_id": job_id,
    }


def key(*, honoured: bool) -> JsonObject:
    """Return evidence of a notification."""
    return {"key": "notify-attempt-1", "honours_keys": honoured}


@pytest.mark.requirement("REC-02", "REC-09", "REC-13", "REC-16", "UNK-03")
@pytest.mark.parametrize(
    ("evidence", "decision"),
    [
        (None, Decision.START),
        ({}, Decision.UNKNOWN),
        ({"request_id": 7}, Decision.UNKNOWN),
        (request(), Decision.UNKNOWN),
        (request(idempotent=True), Decision.QUERY),
        (request(lookup=True), Decision.QUERY),
        (request(job_id="job-1"), Decision.QUERY),
    ],
)
def test_the_evidence_of_a_render_decides(evidence: JsonObject | None, decision: Decision) -> None:
    """The evidence decides without a word to the service."""
    checkpoint = None if evidence is None else Checkpoint(1, {}, evidence)
    remote = FakeRemote()
    assert Render(remote, NoTime()).recover(RENDER, checkpoint).decision is decision
    assert remote.asked == []


@pytest.mark.requirement("REC-02", "REC-12", "REC-13", "REC-16")
@pytest.mark.parametrize(
    ("evidence", "decision"),
    [
        (None, Decision.START),
        ({}, Decision.UNKNOWN),
        ({"key": "", "honours_keys": True}, Decision.UNKNOWN),
        (key(honoured=True), Decision.REPEAT),
        (key(honoured=False), Decision.UNKNOWN),
    ],
)
def test_the_evidence_of_a_notification_decides(
    evidence: JsonObject | None, decision: Decision
) -> None:
    """The same key is sent again, or a person decides."""
    checkpoint = None if evidence is None else Checkpoint(1, {}, evidence)
    assert Notify(FakeRemote(), NoTime()).recover(NOTIFY, checkpoint).decision is decision


def go_on(remote: FakeRemote, evidence: JsonObject) -> AttemptEvent:
    """Go on with a render from its evidence."""
    event = asyncio.run(Render(remote, NoTime()).execute(RENDER, Saving(evidence)))
    assert event is not None
    return event


@pytest.mark.requirement("REC-09", "REC-10")
@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ((RUNNING, RUNNING, DONE), EventKind.SUCCEEDED),
        ((DONE,), EventKind.SUCCEEDED),
        (({"state": "failed"},), EventKind.FAILED),
        ((Reply(404),), EventKind.UNKNOWN),
    ],
)
def test_a_job_that_is_known_is_asked_for(answers: tuple[JsonObject, ...], kind: EventKind) -> None:
    """The answer is followed, or the outcome is unknown; nothing is submitted."""
    remote = FakeRemote()
    remote.answer("GET", JOB, *answers)
    assert go_on(remote, request(job_id="job-1")).kind is kind
    assert remote.times("POST", JOBS) == 0


@pytest.mark.requirement("UNK-02", "UNK-08")
def test_a_job_that_shows_late_is_waited_for() -> None:
    """After two times "not found" the job is attached to and never created again."""
    remote = FakeRemote()
    remote.answer("GET", JOBS, NOTHING, NOTHING, FOUND)
    remote.answer("GET", JOB, DONE)
    assert go_on(remote, request(lookup=True)).kind is EventKind.SUCCEEDED
    assert remote.times("POST", JOBS) == 0


@pytest.mark.requirement("UNK-03", "UNK-08")
def test_a_job_that_never_shows_is_unknown() -> None:
    """There is a bounded number of look-ups, and no second creation."""
    remote = FakeRemote()
    remote.answer("GET", JOBS, NOTHING)
    assert go_on(remote, request(lookup=True)).kind is EventKind.UNKNOWN
    assert (remote.times("GET", JOBS), remote.times("POST", JOBS)) == (LOOK_UPS, 0)


@pytest.mark.requirement("UNK-01", "UNK-02", "UNK-08")
@pytest.mark.parametrize("lookup", [True, False])
def test_a_job_is_created_again_only_under_its_own_id(*, lookup: bool) -> None:
    """It is created again where that is idempotent, also if the reply is lost again."""
    remote = FakeRemote()
    remote.answer("GET", JOBS, NOTHING)
    created: JsonObject = {"job_id": "job-1"}
    remote.answer("POST", JOBS, network_failure(), Reply(503), created)
    remote.answer("GET", JOB, DONE)
    assert go_on(remote, request(idempotent=True, lookup=lookup)).kind is EventKind.SUCCEEDED
    ids = {body["request_id"] for method, _, body in remote.asked if method == "POST" and body}
    assert ids == {"render-attempt-1"}
    assert remote.times("POST", JOBS) == 3


@pytest.mark.requirement("REC-12", "UNK-03")
@pytest.mark.parametrize("trouble", [network_failure(), Reply(500)])
def test_a_notification_without_keys_is_sent_once(trouble: Exception | Reply) -> None:
    """That there is no answer does not prove that it was not sent."""
    remote = FakeRemote()
    remote.answer("GET", "/notifications/capabilities", {"honours_keys": False})
    remote.answer("POST", "/notifications", trouble)
    event = asyncio.run(Notify(remote, NoTime()).execute(NOTIFY, Saving()))
    assert event is not None
    assert event.kind is EventKind.UNKNOWN
    assert remote.times("POST", "/notifications") == 1


@pytest.mark.requirement("REC-03")
def test_a_changed_input_is_not_computed_with() -> None:
    """A changed input is a conflict, and both versions are named."""
    remote = FakeRemote()
    remote.answer("GET", "/files/f", Reply(200, b"new"))
    command = Command("c1", "compute", 1, {"source": "f", "rounds": 2})
    with pytest.raises(DomainError, match="changed from before to ") as refusal:
        asyncio.run(Compute(remote, NoTime()).execute(command, Saving({"input": "before"})))
    assert refusal.value.kind is Kind.CONFLICT
