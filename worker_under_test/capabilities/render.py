"""``render``: a long job at a remote service (REC-09, UNK-01..UNK-04).

Payload ``{"spec": {...}}``. Recovery policy: query, then decide.

Evidence: the request id and what the service can do, saved before the create call; then the job id.

The window: between the create call and the saved job id the job may or may not exist. With no
request id saved, no call can have been sent: start. With one, the service is looked up by it; what
is found is attached to. "Not found" proves nothing while a new job may show late (UNK-08): the job
is created again with the same id where that is idempotent, and else it is looked up a few times
more and then left UNKNOWN. A service that can do neither leaves it UNKNOWN at once. A second id is
never made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from harness.points import crash_point
from worker_under_test.capabilities.asking import FIRST_WAIT_S, Asking, refused
from worker_under_test.domain.errors import DeliveryError, DomainError, Kind
from worker_under_test.domain.event import AttemptEvent, EventKind
from worker_under_test.domain.progress import Progress
from worker_under_test.domain.recovery import Decision, Proposal, RecoveryPolicy

if TYPE_CHECKING:
    from worker_under_test.domain.command import Command
    from worker_under_test.domain.json_value import JsonObject, JsonValue
    from worker_under_test.domain.progress import Checkpoint
    from worker_under_test.ports.capability import ProgressReporter
    from worker_under_test.ports.clock import Clock
    from worker_under_test.ports.remote import Remote, Reply

LOOK_UPS = 5
"""How often a job that cannot be created again is looked up before it is left UNKNOWN."""

POLL_S = 2.0
"""How long to wait between two questions for the state of a job, in seconds."""

_OK, _CREATED, _NOT_FOUND = 200, 201, 404


@dataclass(frozen=True, slots=True)
class Request:
    """The evidence: what was asked of the service, and what it can do.

    Attributes:
        request_id: Its identity, for ever.
        idempotent: A repeated create with this id makes no second job.
        lookup: A job can be found by this id.
        job_id: The service's name for the job, once it is known.
    """

    request_id: str
    idempotent: bool
    lookup: bool
    job_id: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the evidence as it is saved."""
        return {
            "request_id": self.request_id,
            "idempotent": self.idempotent,
            "lookup": self.lookup,
            "job_id": self.job_id,
        }

    @classmethod
    def read(cls, checkpoint: Checkpoint | None) -> Request | None:
        """Read saved evidence; None if there is none that can be understood (REC-16)."""
        saved = checkpoint.evidence if checkpoint else {}
        match dict(saved):
            case {
                "request_id": str(request_id),
                "idempotent": bool(idempotent),
                "lookup": bool(lookup),
                "job_id": str(job_id),
            } if request_id:
                return cls(request_id, idempotent, lookup, job_id)
        return None


class Render:
    """The capability ``render``, version 1.

    Args:
        remote: The services outside.
        clock: Where it waits between questions.
    """

    name = "render"
    version = 1
    policy = RecoveryPolicy.QUERY

    def __init__(self, remote: Remote, clock: Clock) -> None:
        self._remote = remote
        self._asking = Asking(remote, clock)
        self._clock = clock

    def recover(self, command: Command, checkpoint: Checkpoint | None) -> Proposal:  # noqa: ARG002
        """Start if nothing can have been sent; else query, or give it to a person (REC-10)."""
        if checkpoint is None:
            return Proposal(Decision.START, "no request id is saved, so no call was sent")
        request = Request.read(checkpoint)
        if request is None:
            return Proposal(Decision.UNKNOWN, "the saved request cannot be understood")
        if request.job_id:
            return Proposal(Decision.QUERY, "a job id is saved: the job is asked for")
        if request.lookup or request.idempotent:
            return Proposal(Decision.QUERY, "a request id is saved, and the service knows it")
        return Proposal(Decision.UNKNOWN, "the call may have been sent, and nobody can be asked")

    async def execute(self, command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
        """Create the job, or find the one of an earlier life; wait for its end.

        Args:
            command: The command.
            reporter: Line to the attempt.

        Returns:
            The end of the job, or ``unknown`` if nobody can tell whether there is one.

        Raises:
            DomainError: Of kind invalid if the payload is not well formed; of another kind if the
                service refused before anything was sent that could have an effect.
        """
        spec = _spec(command)
        earlier = Request.read(reporter.checkpoint)
        request = earlier or await self._prepare(command, reporter)
        try:
            if not request.job_id:
                job_id = await self._job(command, request, spec, may_exist=earlier is not None)
                if job_id is None:
                    return _unknown(request, "no job is found, and there may be one")
                request = replace(request, job_id=job_id)
                await reporter(Progress("render", "running", 10), request.to_json())
            return await self._end_of(command, request)
        except RefusedError as refusal:
            body: JsonObject = {"request_id": request.request_id, "reason": str(refusal)}
            return AttemptEvent(EventKind.FAILED, body)
        except DomainError as error:
            # A reply that says nothing is no proof that nothing happened.
            return _unknown(request, error.message)

    async def _prepare(self, command: Command, reporter: ProgressReporter) -> Request:
        crash_point("render.request.before", command=command.command_id)
        reply = await self._asking.until_answered("GET", "/render/capabilities")
        can = reply.to_json() if reply.status == _OK else {}
        request = Request(
            self._request_id(reporter),
            idempotent=can.get("idempotent_create") is True,
            lookup=can.get("lookup") is True,
        )
        await self._save(request, reporter)
        return request

    async def _save(self, request: Request, reporter: ProgressReporter) -> None:
        await reporter(Progress("submit", "running", 0), request.to_json())

    def _request_id(self, reporter: ProgressReporter) -> str:
        return f"render-{reporter.attempt_id}"

    async def _job(
        self, command: Command, request: Request, spec: JsonObject, *, may_exist: bool
    ) -> str | None:
        """Come to the one job of a request; None if that cannot be done safely."""
        lookups = 0
        wait_s = FIRST_WAIT_S
        while True:
            if may_exist and request.lookup:
                job_id = await self._look_up(request)
                lookups += 1
                if job_id is not None:
                    return job_id
            if not may_exist or self._may_create_again(request):
                job_id = await self._create(command, request, spec)
                if job_id is not None:
                    return job_id
                may_exist = True
            elif not request.lookup or lookups >= LOOK_UPS:
                return None
            await self._clock.sleep(wait_s)
            wait_s *= 2

    def _may_create_again(self, request: Request) -> bool:
        return request.idempotent

    async def _look_up(self, request: Request) -> str | None:
        path = f"/render/jobs?request_id={quote(request.request_id, safe='')}"
        reply = await self._asking.until_answered("GET", path)
        match reply.to_json() if reply.status == _OK else None:
            case {"jobs": [{"job_id": str(job_id)}, *_]} if job_id:
                return job_id
            case {"jobs": []}:
                return None
        raise DomainError(Kind.INTERNAL, f"the look-up was answered with status {reply.status}")

    async def _create(self, command: Command, request: Request, spec: JsonObject) -> str | None:
        """Send the create call; None if nobody knows what came of it."""
        body: JsonObject = {"request_id": request.request_id, "spec": dict(spec)}
        crash_point("render.create.before", command=command.command_id)
        try:
            reply = await self._remote.request("POST", "/render/jobs", body=body)
        except DeliveryError:
            return None
        crash_point("render.create.after", command=command.command_id)
        if refused(reply):
            raise RefusedError(f"the service refused the job with status {reply.status}")
        if reply.status not in (_OK, _CREATED):
            return None
        try:
            job_id = reply.to_json().get("job_id")
        except DomainError:
            return None
        return job_id if isinstance(job_id, str) and job_id else None

    async def _end_of(self, command: Command, request: Request) -> AttemptEvent:
        path = f"/render/jobs/{quote(request.job_id, safe='')}"
        while True:
            crash_point("render.query.before", command=command.command_id)
            reply = await self._asking.until_answered("GET", path)
            event = self._event_of(request, reply)
            if event is not None:
                return event
            await self._clock.sleep(POLL_S)

    def _event_of(self, request: Request, reply: Reply) -> AttemptEvent | None:
        if reply.status == _NOT_FOUND:
            return _unknown(request, "the service does not know the job any more")
        job = reply.to_json()
        named: dict[str, JsonValue] = {"request_id": request.request_id, "job_id": request.job_id}
        match job.get("state"):
            case "running":
                return None
            case "succeeded":
                return AttemptEvent(EventKind.SUCCEEDED, {**named, "result": job.get("result")})
            case "failed":
                return AttemptEvent(
                    EventKind.FAILED,
                    {**named, "reason": "the job failed", "result": job.get("result")},
                )
        raise DomainError(Kind.INTERNAL, "the service told a state that is none")


class RefusedError(Exception):
    """The service refused the create call, so there is no job."""


def _unknown(request: Request, reason: str) -> AttemptEvent:
    named: JsonObject = {"request_id": request.request_id, "job_id": request.job_id}
    return AttemptEvent(EventKind.UNKNOWN, {**named, "reason": reason})


def _spec(command: Command) -> JsonObject:
    spec = command.payload.get("spec")
    if not isinstance(spec, dict):
        raise DomainError(Kind.INVALID, "spec is not an object")
    return spec
