"""The remote service of long jobs: every contract, every fault, and its memory."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import aiohttp
import pytest
from worker_side import Reply, WorkerSide

from harness.model.errors import HarnessError, UsageError
from harness.world.ledger import Effect, EffectLedger
from harness.world.services.render_jobs import FILE_NAME, read_render_jobs, result_of
from harness.world.services.render_service import RenderService
from harness.world.services.request_log import read_requests
from harness.world.wire_faults import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from worker_side import OpenServices

    from harness.model.canonical_json import JsonObject
    from harness.world.client import World

SPEC: JsonObject = {"id": "s1", "frames": 3}
BEST = partial(RenderService, idempotent_create=True, lookup=True)
WORST = partial(RenderService, idempotent_create=False, lookup=False)


async def _create(worker: WorkerSide, request_id: str, spec: JsonObject = SPEC) -> Reply:
    return await worker.post("/render/jobs", {"request_id": request_id, "spec": spec})


async def _look_up(worker: WorkerSide, request_id: str) -> object:
    reply = await worker.get(f"/render/jobs?request_id={request_id}")
    assert reply.status == 200
    return reply.value["jobs"]


async def _states(worker: WorkerSide, job_id: str, count: int) -> list[object]:
    return [(await worker.get(f"/render/jobs/{job_id}")).value["state"] for _ in range(count)]


@pytest.mark.requirement("UNK-02", "UNK-03")
@pytest.mark.parametrize("idempotent_create", [True, False])
@pytest.mark.parametrize("lookup", [True, False])
def test_the_service_says_what_it_supports(
    open_services: OpenServices, idempotent_create: bool, lookup: bool
) -> None:
    """A worker can know the contract before it relies on it."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            said = await worker.get("/render/capabilities")
            assert said.value == {"idempotent_create": idempotent_create, "lookup": lookup}
            reply = await worker.get("/render/jobs?request_id=r1")
            assert reply.status == (200 if lookup else 501)
            if not lookup:
                assert reply.error_kind == "unsupported"

    endpoint = open_services(
        partial(RenderService, idempotent_create=idempotent_create, lookup=lookup)
    )
    asyncio.run(run())


@pytest.mark.requirement("UNK-02")
def test_a_known_request_id_creates_one_job(open_services: OpenServices, world_dir: Path) -> None:
    """With idempotent creation, a repeat is the same job, another spec a conflict."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            first = await _create(worker, "r1")
            assert (first.status, first.value) == (201, {"job_id": "job-1"})
            again = await _create(worker, "r1", {"frames": 3, "id": "s1"})
            assert (again.status, again.value) == (200, {"job_id": "job-1"})
            other = await _create(worker, "r1", {"id": "s2"})
            assert (other.status, other.error_kind) == (409, "conflict")
            assert (await _create(worker, "r2")).value == {"job_id": "job-2"}

    endpoint = open_services(BEST)
    asyncio.run(run())
    assert EffectLedger(world_dir).effects() == (
        Effect("render_job", "r1", "job-1"),
        Effect("render_job", "r2", "job-2"),
    )
    jobs = read_render_jobs(world_dir)
    assert [(j.position, j.job_id, j.request_id, j.spec) for j in jobs] == [
        (1, "job-1", "r1", SPEC),
        (4, "job-2", "r2", SPEC),
    ]
    outcomes = [request.outcome for request in read_requests(world_dir / FILE_NAME)]
    assert outcomes == ["created", "repeated", "conflicting", "created"]


@pytest.mark.requirement("UNK-04")
def test_without_idempotence_a_repeat_is_a_second_job(
    open_services: OpenServices, world_dir: Path
) -> None:
    """The duplicate is in the ledger, and look-up shows both."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            assert (await _create(worker, "r1")).status == 201
            assert (await _create(worker, "r1")).value == {"job_id": "job-2"}
            assert await _look_up(worker, "r1") == [
                {"job_id": "job-1", "state": "running"},
                {"job_id": "job-2", "state": "running"},
            ]

    endpoint = open_services(partial(RenderService, idempotent_create=False, lookup=True))
    asyncio.run(run())
    assert EffectLedger(world_dir).effects() == (
        Effect("render_job", "r1", "job-1"),
        Effect("render_job", "r1", "job-2"),
    )


@pytest.mark.requirement("REC-10")
def test_jobs_run_and_end(open_services: OpenServices) -> None:
    """A job runs for so many polls, then has the result of its spec, or failed, for good."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            await _create(worker, "r1")
            await _create(worker, "r2", {"id": "bad"})
            running = await worker.get("/render/jobs/job-1")
            assert running.value == {"job_id": "job-1", "state": "running", "result": None}
            assert await _states(worker, "job-1", 1) == ["running"]
            assert await _look_up(worker, "r1") == [{"job_id": "job-1", "state": "succeeded"}]
            for _ in range(2):
                done = await worker.get("/render/jobs/job-1")
                assert done.value == {
                    "job_id": "job-1",
                    "state": "succeeded",
                    "result": result_of({"frames": 3, "id": "s1"}),
                }
            assert await _states(worker, "job-2", 4) == ["running"] * 2 + ["failed"] * 2
            assert (await worker.get("/render/jobs/job-2")).value["result"] is None
            unknown = await worker.get("/render/jobs/job-3")
            assert (unknown.status, unknown.error_kind) == (404, "not_found")

    endpoint = open_services(partial(BEST, fails=frozenset({"bad"})))
    asyncio.run(run())


@pytest.mark.requirement("REC-10")
def test_a_job_may_be_over_at_once(open_services: OpenServices) -> None:
    """No poll has to find it running, and an odd id in the spec fails nothing."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            specs: list[JsonObject] = [{}, {"id": ["bad"]}, {"id": {}}, {"id": 7}, {"id": "bad"}]
            for number, spec in enumerate(specs, 1):
                await _create(worker, f"r{number}", spec)
                state = "failed" if number == len(specs) else "succeeded"
                assert await _states(worker, f"job-{number}", 1) == [state]

    endpoint = open_services(partial(BEST, polls_to_finish=0, fails=frozenset({"bad"})))
    asyncio.run(run())


@pytest.mark.requirement("UNK-08")
def test_a_new_job_is_visible_late(open_services: OpenServices) -> None:
    """Only look-ups of its id since its creation count."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            for _ in range(3):
                assert await _look_up(worker, "r1") == []
            await _create(worker, "r1")
            assert await _states(worker, "job-1", 1) == ["running"]
            assert await _look_up(worker, "r2") == []
            assert await _look_up(worker, "r1") == []
            assert await _look_up(worker, "r1") == []
            job = {"job_id": "job-1", "state": "running"}
            assert await _look_up(worker, "r1") == [job]
            # Creation knows the job all the time.
            assert (await _create(worker, "r1")).value == {"job_id": "job-1"}

    endpoint = open_services(partial(BEST, visible_after=2))
    asyncio.run(run())


@dataclass(frozen=True)
class _Struck:
    """A kind of request, and how often its reply has to be lost until the client sees that."""

    request: str
    key: str
    lost: int
    ask: Callable[[WorkerSide], Coroutine[None, None, Reply]]


@pytest.mark.requirement("UNK-01", "REC-11", "HAR-05")
@pytest.mark.parametrize(
    "case",
    [
        # aiohttp's client repeats a GET once by itself.
        _Struck("create", "r2", 1, lambda worker: _create(worker, "r2")),
        _Struck("lookup", "r1", 2, lambda worker: worker.get("/render/jobs?request_id=r1")),
        _Struck("poll", "job-1", 2, lambda worker: worker.get("/render/jobs/job-1")),
    ],
    ids=lambda case: case.request,
)
def test_faults_before_and_after_it_acted(
    open_services: OpenServices,
    world_dir: Path,
    case: _Struck,
) -> None:
    """Refused, nothing is done; lost, it is done and nobody heard; then it is served."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            await _create(worker, "r1")
            refused = await case.ask(worker)
            assert (refused.status, refused.error_kind) == (503, "unavailable")
            before.extend(read_render_jobs(world_dir))
            with pytest.raises(aiohttp.ServerDisconnectedError):
                await case.ask(worker)
            after.extend(read_render_jobs(world_dir))
            assert (await case.ask(worker)).status == 200

    before: list[object] = []
    after: list[object] = []
    numbers = range(2, 2 + case.lost)
    faults = (
        Fault("refused", case.request, case.key),
        *(Fault("reply_lost", case.request, case.key, nth) for nth in numbers),
    )
    endpoint = open_services(partial(BEST, faults=faults))
    asyncio.run(run())
    assert len(before) == 1
    assert before != after, "the request whose reply was lost left nothing"
    logged = read_requests(world_dir / FILE_NAME)
    struck = [r for r in logged if (r.request, r.key) == (case.request, case.key)]
    assert [(r.nth, r.fault) for r in struck] == [
        (1, "refused"),
        *((nth, "reply_lost") for nth in numbers),
        (2 + case.lost, ""),
    ]
    assert struck[0].outcome == "refused"
    assert len(EffectLedger(world_dir).effects()) == len(read_render_jobs(world_dir))


def test_a_conflict_can_be_lost_too(open_services: OpenServices, world_dir: Path) -> None:
    """Whatever the answer would have been, it does not arrive, and is in the log."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            await _create(worker, "r1")
            with pytest.raises(aiohttp.ServerDisconnectedError):
                await _create(worker, "r1", {"id": "s2"})

    endpoint = open_services(partial(BEST, faults=(Fault("reply_lost", "create", "r1", 2),)))
    asyncio.run(run())
    last = read_requests(world_dir / FILE_NAME)[-1]
    assert (last.outcome, last.fault) == ("conflicting", "reply_lost")


def test_malformed_requests_leave_nothing(open_services: OpenServices, world_dir: Path) -> None:
    """The message names what is wrong; neither log nor ledger has it."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            bodies: list[JsonObject | bytes] = [
                b"",
                b"[]",
                b"{",
                b'{"request_id": "r", "spec": {"n": NaN}}',
                {"spec": {}},
                {"request_id": "r"},
                {"request_id": "", "spec": {}},
                {"request_id": "a\0", "spec": {}},
                {"request_id": 1, "spec": {}},
                {"request_id": "r", "spec": []},
            ]
            for body in bodies:
                reply = await worker.post("/render/jobs", body)
                assert (reply.status, reply.error_kind) == (400, "invalid"), body
            for query in ("", "?request_id=", "?request_id=a&request_id=b", "?request_id=%00"):
                reply = await worker.get(f"/render/jobs{query}")
                assert (reply.status, reply.error_kind) == (400, "invalid"), query
                assert "request_id" in reply.error_message
            assert (await worker.get("/render/jobs/a%00")).error_kind == "invalid"
            assert (await worker.get("/render")).error_kind == "not_found"

    endpoint = open_services(BEST)
    asyncio.run(run())
    assert read_requests(world_dir / FILE_NAME) == ()
    assert EffectLedger(world_dir).effects() == ()


@pytest.mark.requirement("UNK-08", "REC-09")
def test_jobs_go_on_in_a_copy(world: World, open_services: OpenServices, world_dir: Path) -> None:
    """Jobs, polls, look-ups and faults outlive the opening, in a snapshot too."""
    service = partial(
        BEST, visible_after=2, faults=(Fault("refused", "create", "r1", 3),), polls_to_finish=2
    )

    async def before() -> None:
        async with WorkerSide(endpoint) as worker:
            for _ in range(2):
                assert (await _create(worker, "r1")).value == {"job_id": "job-1"}
            assert await _look_up(worker, "r1") == []
            assert await _states(worker, "job-1", 1) == ["running"]

    async def after() -> None:
        async with WorkerSide(endpoint) as worker:
            assert (await _create(worker, "r1")).status == 503
            assert (await _create(worker, "r1")).value == {"job_id": "job-1"}
            assert (await _create(worker, "r2")).value == {"job_id": "job-2"}
            assert await _look_up(worker, "r1") == []
            assert await _look_up(worker, "r1") == [{"job_id": "job-1", "state": "running"}]
            assert await _states(worker, "job-1", 2) == ["running", "succeeded"]

    endpoint = open_services(service)
    asyncio.run(before())
    live = read_render_jobs(world_dir)
    copy = world_dir.with_name("copy")
    world.snapshot(copy)
    world.close_services()
    assert read_render_jobs(world_dir) == read_render_jobs(copy) == live
    assert [(j.lookups, j.polls) for j in live] == [(1, 1)]
    for directory in (copy, world_dir):
        endpoint = open_services(service, at=directory)
        asyncio.run(after())
        world.close_services()
        assert [e.token for e in EffectLedger(directory).effects()] == ["job-1", "job-2"]


def test_contradictions_are_usage_errors_of_the_opening(
    world: World, open_services: OpenServices, world_dir: Path
) -> None:
    """A fault for an unknown request is refused with the nearest known one."""
    with pytest.raises(UsageError, match="did you mean 'lookup'"):
        open_services(partial(BEST, faults=(Fault("refused", "lokup", "r1"),)))
    with pytest.raises(UsageError, match="from 0"):
        open_services(partial(WORST, polls_to_finish=-1))
    with pytest.raises(HarnessError, match=r"render\.db"):
        read_render_jobs(world_dir)
