"""The jobs of the render service, as they follow from its log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, cast

from harness.model.canonical_json import digest
from harness.world.services.request_log import REFUSED, read_requests

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.canonical_json import JsonObject
    from harness.world.services.request_log import LoggedRequest

FILE_NAME: Final = "render.db"
"""Name of the log in the world's directory."""

JobState = Literal["running", "succeeded", "failed"]
"""Where a job is."""


@dataclass(frozen=True, slots=True)
class RenderJob:
    """A job that was created.

    Attributes:
        position: Place of its creation in the service's log, from 1.
        job_id: ``job-N``, numbered in the order of creation.
        request_id: What its creator called it. Two jobs with one request id are the same work,
            done twice.
        spec: What to render.
        lookups: How many look-ups of its request id the service served since its creation.
        polls: How many polls of it the service served.
    """

    position: int
    job_id: str
    request_id: str
    spec: JsonObject
    lookups: int = 0
    polls: int = 0


@dataclass(frozen=True, slots=True)
class RenderContract:
    """How jobs show and how they end.

    Attributes:
        visible_after: How many look-ups of its request id do not show a job yet.
        polls_to_finish: How many polls find a job running.
        fails: Values of ``id`` in the specs whose jobs fail.
    """

    visible_after: int
    polls_to_finish: int
    fails: frozenset[str]

    def is_visible(self, job: RenderJob) -> bool:
        """Return whether a look-up shows a job."""
        return job.lookups >= self.visible_after

    def state(self, job: RenderJob) -> JobState:
        """Return where a job is."""
        if job.polls < self.polls_to_finish:
            return "running"
        spec_id = job.spec.get("id")
        return "failed" if isinstance(spec_id, str) and spec_id in self.fails else "succeeded"


class RenderBooks:
    """The jobs, as they follow from the log."""

    def __init__(self) -> None:
        self._jobs: dict[str, RenderJob] = {}

    def enter(self, logged: LoggedRequest) -> None:
        """Enter a request of the log.

        Args:
            logged: The next one.
        """
        if logged.outcome == REFUSED:
            return
        match logged.request:
            case "create" if logged.outcome == "created":
                job_id = cast("str", logged.body["job_id"])
                spec = cast("JsonObject", logged.body["spec"])
                self._jobs[job_id] = RenderJob(logged.position, job_id, logged.key, spec)
            case "lookup":
                for job in self.of_request(logged.key):
                    self._jobs[job.job_id] = replace(job, lookups=job.lookups + 1)
            case "poll" if logged.key in self._jobs:
                job = self._jobs[logged.key]
                self._jobs[job.job_id] = replace(job, polls=job.polls + 1)

    def jobs(self) -> tuple[RenderJob, ...]:
        """Return every job, in the order of creation."""
        return tuple(self._jobs.values())

    def job(self, job_id: str) -> RenderJob | None:
        """Return a job, if there is one with this id."""
        return self._jobs.get(job_id)

    def of_request(self, request_id: str) -> tuple[RenderJob, ...]:
        """Return the jobs that were created under a request id, the oldest first."""
        return tuple(job for job in self._jobs.values() if job.request_id == request_id)

    def next_job_id(self) -> str:
        """Return the id of the job that is created next."""
        return f"job-{len(self._jobs) + 1}"


def result_of(spec: JsonObject) -> JsonObject:
    """Return what a job that succeeds gives: a function of its spec alone.

    Args:
        spec: What to render.
    """
    return {"image": digest(spec)}


def read_render_jobs(world_dir: Path) -> tuple[RenderJob, ...]:
    """Read which jobs a render service created, in their order.

    Args:
        world_dir: A workspace's ``world/``, or a copy of it.

    Raises:
        HarnessError: There was no render service, or its log cannot be read.
    """
    books = RenderBooks()
    for logged in read_requests(world_dir / FILE_NAME):
        books.enter(logged)
    return books.jobs()
