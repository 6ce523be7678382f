"""A remote service of long jobs, with a contract as good or as bad as real ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.model.canonical_json import canonical
from harness.model.errors import UsageError
from harness.world.http_errors import error_reply, json_reply
from harness.world.http_fields import path_text, query_text, read_fields
from harness.world.services.logged_service import LoggedService
from harness.world.services.render_jobs import FILE_NAME, RenderBooks, RenderContract, result_of
from harness.world.services.request_log import RequestLog

if TYPE_CHECKING:
    from aiohttp import web

    from harness.world.wire_faults import Fault

REQUESTS: Final = ("create", "lookup", "poll")
"""Requests that can have faults. A creation and a look-up are known by the request id, a poll by
the job id."""


class RenderService(LoggedService):
    """The service ``/render/`` that `docs/world.md` describes; one instance serves one experiment.

    Args:
        idempotent_create: Whether a request id that is known creates no second job.
        lookup: Whether jobs can be looked up by their request id.
        visible_after: How many look-ups of its request id do not show a job yet.
        polls_to_finish: How many polls find a job running.
        fails: Values of ``id`` in the specs whose jobs fail.
        faults: Faults at `REQUESTS`.

    Raises:
        UsageError: A number is below zero, or the faults contradict themselves.
    """

    def __init__(
        self,
        *,
        idempotent_create: bool,
        lookup: bool,
        visible_after: int = 0,
        polls_to_finish: int = 2,
        fails: frozenset[str] = frozenset(),
        faults: tuple[Fault, ...] = (),
    ) -> None:
        if min(visible_after, polls_to_finish) < 0:
            raise UsageError("a render service counts look-ups and polls from 0")
        self._idempotent_create = idempotent_create
        self._lookup = lookup
        self._contract = RenderContract(visible_after, polls_to_finish, fails)
        self._books = RenderBooks()
        super().__init__(RequestLog(FILE_NAME, REQUESTS, faults, self._books.enter))

    def add_routes(self, routes: web.UrlDispatcher) -> None:
        """Add the routes.

        Args:
            routes: Where they go.
        """
        routes.add_get("/render/capabilities", self._capabilities, allow_head=False)
        routes.add_post("/render/jobs", self._create)
        routes.add_get("/render/jobs", self._look_up, allow_head=False)
        routes.add_get("/render/jobs/{job_id}", self._poll, allow_head=False)

    async def _capabilities(self, _request: web.Request) -> web.Response:
        return json_reply({"idempotent_create": self._idempotent_create, "lookup": self._lookup})

    async def _create(self, request: web.Request) -> web.Response:
        fields = await read_fields(request)
        request_id, spec = fields.text("request_id"), fields.object("spec")
        async with self.log.turn("create", request_id) as turn:
            jobs = self._books.of_request(request_id) if self._idempotent_create else ()
            if not jobs:
                job_id = self._books.next_job_id()
                await turn.keep("created", {"job_id": job_id, "spec": spec})
                self.ledger.record("render_job", request_id, job_id)
                reply = json_reply({"job_id": job_id}, 201)
            elif canonical(jobs[0].spec) == canonical(spec):
                await turn.keep("repeated", {"job_id": jobs[0].job_id})
                reply = json_reply({"job_id": jobs[0].job_id})
            else:
                await turn.keep("conflicting", {"spec": spec})
                reply = error_reply(
                    "conflict", f"request {request_id!r} is known with another spec"
                )
        return reply

    async def _look_up(self, request: web.Request) -> web.Response:
        request_id = query_text(request, "request_id")
        async with self.log.turn("lookup", request_id) as turn:
            if not self._lookup:
                await turn.keep("unsupported")
                reply = error_reply("unsupported", "jobs cannot be looked up here")
            else:
                shown = [
                    job
                    for job in self._books.of_request(request_id)
                    if self._contract.is_visible(job)
                ]
                jobs = [{"job_id": job.job_id, "state": self._contract.state(job)} for job in shown]
                await turn.keep("shown" if shown else "nothing", {"jobs": jobs})
                reply = json_reply({"jobs": jobs})
        return reply

    async def _poll(self, request: web.Request) -> web.Response:
        job_id = path_text(request, "job_id")
        async with self.log.turn("poll", job_id) as turn:
            job = self._books.job(job_id)
            if job is None:
                await turn.keep("not_found")
                reply = error_reply("not_found", f"there is no job {job_id!r}")
            else:
                state = self._contract.state(job)
                result = result_of(job.spec) if state == "succeeded" else None
                await turn.keep(state)
                reply = json_reply({"job_id": job_id, "state": state, "result": result})
        return reply
