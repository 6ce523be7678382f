"""Malformed replies of the services outside: an error or UNKNOWN, and nothing is done twice."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

import pytest
from malformed_doubles import NoTime, Saving
from network_doubles import FakeRemote
from planned_faults import network_failure

from worker_under_test.adapters.local_file_space import LocalFileSpace
from worker_under_test.capabilities.compute import MAX_SOURCE_BYTES, Compute
from worker_under_test.capabilities.notify import Notify
from worker_under_test.capabilities.render import Render
from worker_under_test.capabilities.transfer import Transfer
from worker_under_test.domain.command import Command
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.event import EventKind
from worker_under_test.ports.remote import Reply

if TYPE_CHECKING:
    from pathlib import Path

    from worker_under_test.domain.event import AttemptEvent
    from worker_under_test.domain.json_value import JsonObject

MALFORMED = {
    "empty": Reply(200, b""),
    "half an object": Reply(200, b"{"),
    "a list": Reply(200, b"[]"),
    "null": Reply(200, b"null"),
    "a text": Reply(200, b'"x"'),
    "no UTF-8": Reply(200, b"\xff\xfe"),
    "an object without anything": Reply(200, b"{}"),
    "a page": Reply(200, b"<html>"),
    "nested too deeply": Reply(200, b"[" * 100_000),
    "a job id that is a number": Reply(200, b'{"job_id": 1}'),
    "a job id that is empty": Reply(200, b'{"job_id": ""}'),
    "a job id that is no Unicode": Reply(200, rb'{"job_id": "\ud800"}'),
    "not a number": Reply(200, b'{"job_id": "j", "state": "succeeded", "result": NaN}'),
    "too large a number": Reply(200, b'{"job_id": "j", "state": "failed", "result": 1e999}'),
    "cut": Reply(200, b'{"job_id"', whole=False),
    "whole, but said to be cut": Reply(200, b'{"job_id": "j"}', whole=False),
    "no content": Reply(204),
    "a redirect": Reply(302, b"", {"location": "http://elsewhere/"}),
    "a status that is none": Reply(299, b"{}"),
}
LOOK_UPS = {
    **MALFORMED,
    "no list of jobs": Reply(200, b'{"jobs": {}}'),
    "null for jobs": Reply(200, b'{"jobs": null}'),
    "a job that is a text": Reply(200, b'{"jobs": ["job-1"]}'),
    "a job without id": Reply(200, b'{"jobs": [{}]}'),
    "a job with a number for id": Reply(200, b'{"jobs": [{"job_id": 1}]}'),
    "a job with an empty id": Reply(200, b'{"jobs": [{"job_id": ""}]}'),
    "not found": Reply(404),
    "refused": Reply(403),
    "not implemented": Reply(501),
}
POLLS = {
    **MALFORMED,
    "not found": Reply(404),
    "a state that is none": Reply(200, b'{"state": "odd"}'),
    "a state that is a number": Reply(200, b'{"state": 1}'),
    "no state": Reply(200, b'{"result": {}}'),
}
CAN: JsonObject = {"idempotent_create": False, "lookup": False}
LOOKS: JsonObject = {
    "request_id": "render-attempt-1",
    "idempotent": False,
    "lookup": True,
    "job_id": "",
}
KNOWS: JsonObject = {**LOOKS, "job_id": "job-1"}
RENDER = Command("r1", "render", 1, {"spec": {"id": "r1"}})
JOBS, JOB = "/render/jobs", "/render/jobs/job-1"


def rendered(remote: FakeRemote, reporter: Saving) -> AttemptEvent:
    """Execute a render."""
    event = asyncio.run(Render(remote, NoTime()).execute(RENDER, reporter))
    assert event is not None
    return event


@pytest.mark.requirement("REC-10", "UNK-03", "UNK-05")
@pytest.mark.parametrize("case", MALFORMED)
def test_a_create_that_is_answered_badly_is_unknown_and_not_sent_again(case: str) -> None:
    """The answer does not prove that there is no job; what was asked is saved."""
    remote, reporter = FakeRemote(), Saving()
    remote.answer("GET", "/render/capabilities", CAN)
    remote.answer("POST", JOBS, MALFORMED[case])
    event = rendered(remote, reporter)
    assert event.kind is EventKind.UNKNOWN
    assert event.body["reason"]
    assert remote.times("POST", JOBS) == 1
    assert reporter.checkpoint is not None
    assert reporter.checkpoint.evidence["request_id"] == "render-attempt-1"


@pytest.mark.requirement("ATT-08", "REC-10")
@pytest.mark.parametrize("status", [400, 403, 404, 409, 501])
def test_a_create_that_is_refused_fails(status: int) -> None:
    """A refusal says that there is no job."""
    remote = FakeRemote()
    remote.answer("GET", "/render/capabilities", CAN)
    remote.answer("POST", JOBS, Reply(status))
    event = rendered(remote, Saving())
    assert event.kind is EventKind.FAILED
    assert str(status) in str(event.body["reason"])


@pytest.mark.requirement("REC-10", "UNK-08")
@pytest.mark.parametrize("case", LOOK_UPS)
def test_a_look_up_that_is_answered_badly_is_unknown_and_creates_nothing(case: str) -> None:
    """Whatever it is, it is not "not found"."""
    remote = FakeRemote()
    remote.answer("GET", JOBS, LOOK_UPS[case])
    event = rendered(remote, Saving(LOOKS))
    assert event.kind is EventKind.UNKNOWN
    assert event.body["reason"]
    assert remote.times("POST", JOBS) == 0


@pytest.mark.requirement("REC-09", "REC-10")
@pytest.mark.parametrize("case", POLLS)
def test_a_poll_that_is_answered_badly_is_unknown_and_keeps_the_job(case: str) -> None:
    """The job is named in the event, for the person who looks for it."""
    remote = FakeRemote()
    remote.answer("GET", JOB, POLLS[case])
    event = rendered(remote, Saving(KNOWS))
    assert (event.kind, event.body["job_id"]) == (EventKind.UNKNOWN, "job-1")


@pytest.mark.requirement("REC-16", "UNK-02", "REC-12")
@pytest.mark.parametrize("case", MALFORMED)
@pytest.mark.parametrize("path", ["/render/capabilities", "/notifications/capabilities"])
def test_what_a_service_can_do_is_never_guessed(path: str, case: str) -> None:
    """The attempt fails before anything is sent, or trusts in nothing."""
    remote, reporter = FakeRemote(), Saving()
    remote.answer("GET", path, MALFORMED[case])
    remote.answer("POST", JOBS, network_failure())
    remote.answer("POST", "/notifications", network_failure())
    work = Render(remote, NoTime()) if "render" in path else Notify(remote, NoTime())
    command = RENDER if "render" in path else NOTIFY
    try:
        event = asyncio.run(work.execute(command, reporter))
    except DomainError:
        assert reporter.checkpoint is None
        assert remote.times("POST", JOBS) + remote.times("POST", "/notifications") == 0
    else:
        assert event is not None
        assert event.kind is EventKind.UNKNOWN
        assert remote.times("POST", JOBS) + remote.times("POST", "/notifications") == 1


NOTIFY = Command("n1", "notify", 1, {"channel": "n1", "text": "x"})


def notified(reply: Reply, *, honours: bool) -> tuple[AttemptEvent, int]:
    """Send a notification that is answered so; return what came of it, and how often it went."""
    remote = FakeRemote()
    remote.answer("GET", "/notifications/capabilities", {"honours_keys": honours})
    remote.answer("POST", "/notifications", reply)
    event = asyncio.run(Notify(remote, NoTime()).execute(NOTIFY, Saving()))
    assert event is not None
    return event, remote.times("POST", "/notifications")


@pytest.mark.requirement("ATT-08")
@pytest.mark.parametrize("honours", [True, False])
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 422, 501])
def test_a_notification_that_is_refused_fails(status: int, *, honours: bool) -> None:
    """A refusal is an answer."""
    event, sent = notified(Reply(status, b"\xff{"), honours=honours)
    assert (event.kind, sent) == (EventKind.FAILED, 1)
    assert str(status) in str(event.body["reason"])


@pytest.mark.requirement("REC-12", "REC-16", "UNK-05")
@pytest.mark.parametrize("honours", [True, False])
@pytest.mark.parametrize("status", [201, 203, 204, 206, 299, 300, 301, 302, 304, 307, 308])
def test_a_notification_that_may_have_been_taken_is_unknown(status: int, *, honours: bool) -> None:
    """What is neither an acceptance nor a refusal is not made into one."""
    event, sent = notified(Reply(status, b"{}"), honours=honours)
    assert (event.kind, sent) == (EventKind.UNKNOWN, 1)
    assert str(status) in str(event.body["reason"])


@pytest.mark.requirement("REC-12")
@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000, b"<html>"])
def test_a_notification_that_was_taken_needs_no_body(body: bytes) -> None:
    """The status says it, and what is beside it changes nothing."""
    for whole in (True, False):
        event, sent = notified(Reply(202, body, whole=whole), honours=False)
        assert (event.kind, sent) == (EventKind.SUCCEEDED, 1)


ETAG = {"etag": '"1"'}
DIGITS = "9" * 5000


def part(content_range: str, body: bytes = b"x", status: int = 206) -> Reply:
    """Return a part."""
    return Reply(status, body, {**ETAG, "content-range": content_range})


BAD_PARTS = {
    "not found": Reply(404),
    "no headers": Reply(206, b"x"),
    "no range": Reply(206, b"x", ETAG),
    "whole without a tag": Reply(200, b"x"),
    "whole without a length": Reply(200, b"x", ETAG),
    "letters for a range": part("bytes x-y/z"),
    "a range of another unit": part("lines 0-0/1"),
    "a range with other digits": part("bytes \u0660-\u0660/\u0661"),
    "a range of many digits": part(f"bytes 0-0/{DIGITS}"),
    "a range that starts at many digits": part(f"bytes {DIGITS}-{DIGITS}/1"),
    "a range without a start": part("bytes */5"),
    "a range without a size": part("bytes 0-0/*"),
    "a range elsewhere": part("bytes 7-7/9"),
    "more than the range's source has": part("bytes 0-0/1", b"xyz"),
    "nothing of a range": part("bytes 0-4/5", b""),
    "no content": Reply(204),
    "a redirect": Reply(301, b"", {"location": "/"}),
    "a weak tag": Reply(206, b"x", {"etag": "W/1", "content-range": "bytes 0-0/1"}),
    "no such range": Reply(416),
    "no such range, of a source": part("bytes */5", b"", 416),
    "a negative length": Reply(200, b"x", {**ETAG, "content-length": "-1"}),
    "a length of many digits": Reply(200, b"x", {**ETAG, "content-length": DIGITS}),
    "a length in other digits": Reply(200, b"x", {**ETAG, "content-length": "\u0661"}),
    "a length below the body": Reply(200, b"xyz", {**ETAG, "content-length": "1"}),
    "nothing of a whole": Reply(200, b"", {**ETAG, "content-length": "5"}),
    "the start of a whole": Reply(200, b"x", {**ETAG, "content-length": "5"}, whole=False),
}


@pytest.mark.requirement("REC-04", "REC-08", "FIL-09")
@pytest.mark.parametrize("case", BAD_PARTS)
def test_a_part_that_cannot_be_placed_fails_the_transfer_and_leaves_nothing(
    tmp_path: Path, case: str
) -> None:
    """It fails with a reason after a bounded number of answers, and leaves no file."""
    remote = FakeRemote()
    remote.answer("GET", "/files/f", BAD_PARTS[case])
    work = Transfer(LocalFileSpace(tmp_path), remote, NoTime())
    with pytest.raises(DomainError, match="file server") as failure:
        asyncio.run(work.execute(Command("t1", "transfer", 1, {"name": "f"}), Saving()))
    assert failure.value.kind in (Kind.INTERNAL, Kind.NOT_FOUND)
    assert remote.times("GET", "/files/f") <= 10
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.requirement("REC-03")
@pytest.mark.parametrize("status", [204, 301, 400, 404, 501])
def test_a_source_that_is_not_given_fails_the_work(status: int) -> None:
    """There is no input, and nothing is made up."""
    remote = FakeRemote()
    remote.answer("GET", "/files/f", Reply(status))
    command = Command("c1", "compute", 1, {"source": "f", "rounds": 2})
    with pytest.raises(DomainError, match=str(status)):
        asyncio.run(Compute(remote, NoTime()).execute(command, Saving()))


@pytest.mark.requirement("REC-03", "REC-11")
@pytest.mark.parametrize("size", [0, 5])
def test_a_source_that_is_cut_is_asked_for_again_with_growing_waits(size: int) -> None:
    """A cut source is never computed with, and the file server is not hammered."""
    remote, clock = FakeRemote(), NoTime()
    cut = Reply(200, b"x" * size, whole=False)
    remote.answer("GET", "/files/f", *[cut] * 3, Reply(200, b"all of it"))
    command = Command("c1", "compute", 1, {"source": "f", "rounds": 2})
    event = asyncio.run(Compute(remote, clock).execute(command, Saving()))
    assert event is not None
    assert event.body["input"] == hashlib.sha256(b"all of it").hexdigest()
    assert clock.slept == [1, 2, 4]


@pytest.mark.requirement("REC-03", "ATT-08")
def test_a_source_that_is_too_large_is_refused_and_not_asked_for_for_ever() -> None:
    """A body that was cut because it is too large never comes whole."""
    remote = FakeRemote()
    remote.answer("GET", "/files/f", Reply(200, b"x" * (MAX_SOURCE_BYTES + 1), whole=False))
    command = Command("c1", "compute", 1, {"source": "f", "rounds": 2})
    with pytest.raises(DomainError, match="too large"):
        asyncio.run(Compute(remote, NoTime()).execute(command, Saving()))
    assert remote.times("GET", "/files/f") == 1


@pytest.mark.requirement("REC-11")
def test_a_service_that_does_not_answer_is_asked_again_and_nothing_is_submitted() -> None:
    """Ten rounds of failures have growing waits, and there is one job in the end."""
    remote, clock = FakeRemote(), NoTime()
    failures = [network_failure() if n % 2 else Reply(503) for n in range(10)]
    found: JsonObject = {"jobs": [{"job_id": "job-1", "state": "running"}]}
    remote.answer("GET", JOBS, *failures, found)
    remote.answer("GET", JOB, {"state": "succeeded", "result": {"image": "i"}})
    event = asyncio.run(Render(remote, clock).execute(RENDER, Saving(LOOKS)))
    assert event is not None
    assert event.kind is EventKind.SUCCEEDED
    assert remote.times("POST", JOBS) == 0
    assert clock.slept == [1, 2, 4, 8, 16, 30, 30, 30, 30, 30]


def test_there_are_so_many() -> None:
    """The cases are counted, so that none is lost from the lists."""
    assert len(MALFORMED) + len(LOOK_UPS) + len(POLLS) + len(BAD_PARTS) == 96
