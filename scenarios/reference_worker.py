"""The reference worker as a scenario's worker: behind a scheduler, with ids from the seed."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from harness.deterministic_asyncio import Scheduler
from worker_under_test.domain.order import CLEAN_UP
from worker_under_test.main import Parts, run
from worker_under_test.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.model.site import Site

_ASK_S = 10.0

Port = TypeVar("Port")

QUIET_AT = "worker.idle.before"

_WAITS_WITHOUT_BOUND = frozenset({"next"})


class _Clock:
    """Backs off in virtual time, and idles until there is something to do.

    The idle poll is left out: it would come by the passing of real time, and move the draws.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    async def sleep(self, delay_s: float) -> None:
        """Back off."""
        await self._scheduler.sleep(delay_s)

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:  # noqa: ARG002
        """Idle."""
        await event.wait()


class _Wrapper:
    """Puts the scheduler around each port that does I/O."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def __call__(self, name: str, port: Port) -> Port:
        """Return what takes the port's place."""
        if name == "clock":
            return cast("Port", _Clock(self._scheduler))
        return self._scheduler.serialize(port, free=_WAITS_WITHOUT_BOUND)


def reference_worker(site: Site, parts: Parts | None = None, capacity: int = 4) -> None:
    """Live as the reference worker until the end.

    Args:
        site: Where it lives.
        parts: How its parts are made; a known-bad worker replaces one.
        capacity: How many attempts may be open at once.
    """
    _run(site, parts, stop_when_idle=False, capacity=capacity)


def warm_up(site: Site, parts: Parts | None = None, capacity: int = 4) -> None:
    """Live until idle and end gracefully, so that everything is imported and run once.

    Args:
        site: Where it lives.
        parts: How its parts are made.
        capacity: How many attempts may be open at once.
    """
    _run(site, parts, stop_when_idle=True, capacity=capacity)


def worker_with(parts: Parts | None = None, capacity: int = 4) -> Callable[[Site], None]:
    """Return the reference worker with some of its parts replaced."""
    return partial(reference_worker, parts=parts, capacity=capacity)


def is_new(site: Site) -> bool:
    """Tell whether this worker never registered: the one case in which its database may be made.

    An operator knows that from the coordinator and not from the worker's directory: a directory
    that lost its database looks like one of a worker that never was (IDN-02).
    """
    with closing(_connect(site.endpoint)) as connection:
        connection.request("GET", f"/instances/{site.identity}")
        known = json.loads(connection.getresponse().read())
    return bool(known["sessions"] == 0)


def _connect(endpoint: str) -> http.client.HTTPConnection:
    if not endpoint.startswith("unix:"):
        return http.client.HTTPConnection(endpoint.removeprefix("http://"), timeout=_ASK_S)
    connection = http.client.HTTPConnection("localhost", timeout=_ASK_S)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.sock.settimeout(_ASK_S)
    connection.sock.connect(endpoint.removeprefix("unix:"))
    return connection


def _leave_behind(site: Site) -> None:
    """Put files there that an attempt of long ago left, if a clean-up is to find something."""
    directory = site.worker_dir / "files" / "artifacts" / "long-ago"
    asked = any(command.body.get("capability") == CLEAN_UP for command in site.offered)
    if asked and site.incarnation == 1:
        directory.mkdir(parents=True)
        for name in ("a", "b"):
            (directory / f"{name}.attempt-0.tmp").write_text("half", encoding="utf-8")


def _run(site: Site, parts: Parts | None, *, stop_when_idle: bool, capacity: int) -> None:
    scheduler = Scheduler(f"{site.seed}/{site.incarnation}")
    _leave_behind(site)
    settings = Settings(
        root=site.worker_dir,
        coordinator=site.endpoint,
        instance_id=site.identity,
        capacity=capacity,
        init=is_new(site),
        id_seed=str(site.seed),
    )

    async def live() -> None:
        stop = asyncio.Event()
        if stop_when_idle:
            scheduler.when_blocked(stop.set)
        await run(settings, parts=parts, wrap=_Wrapper(scheduler), stop=stop)

    scheduler.run(live)
