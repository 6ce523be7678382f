"""A scenario file whose workers tell through a pipe how far they are, and leave daemons behind.

The pipe and the daemons' name come in environment variables, for who kills parts of the run.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from harness.model.workload import Command, Workload
from harness.oracles.effects import EveryCommandHasEffect, NoEffectTwice
from harness.points import crash_point
from harness.scenario import Scenario, broken_by

if TYPE_CHECKING:
    from harness.model.site import Site
    from harness.world.services.effects import EffectsService

PIPE = "TELLING_WORKERS_PIPE"
DAEMON = "TELLING_WORKERS_DAEMON"


def _pipe() -> int:
    """Open the pipe; at import, since a path that a worker opens is something left outside."""
    path = os.environ.get(PIPE)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC) if path else -1


_TOLD = _pipe()


def tell() -> None:
    """Write a line into the pipe; when it is full, there is enough in it."""
    with suppress(BlockingIOError):
        os.write(_TOLD, b".\n")


def leave_daemon() -> None:
    """Start a process with a session of its own, no parent, and an empty environment."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 64)
            os.execve("/bin/sleep", [os.environ[DAEMON], "600"], {})
        os._exit(0)
    os.wait()


def charge(site: Site, key: str) -> None:
    """Ask the world for an effect."""
    link = http.client.HTTPConnection("world", timeout=5)
    link.sock = socket.socket(socket.AF_UNIX)
    link.sock.connect(site.endpoint.removeprefix("unix:"))
    body = {"kind": "charge", "key": key, "token": f"{key}-{site.incarnation}"}
    link.request("POST", "/effects", json.dumps(body), {"Content-Type": "application/json"})
    assert link.getresponse().status in (200, 201)
    link.close()


def _work(site: Site) -> None:
    tell()
    leave_daemon()
    done = site.worker_dir / "done.txt"
    finished = done.read_text(encoding="utf-8").split() if done.exists() else []
    for order in site.offered:
        if order.command_id in finished:
            continue
        crash_point("order.charge.before", order=order.command_id)
        tell()
        charge(site, order.command_id)
        crash_point("order.charge.after", order=order.command_id)
        tell()
        with done.open("a", encoding="utf-8") as file:
            file.write(f"{order.command_id}\n")


def careful(site: Site) -> None:
    """Have an effect for every order that is not written down; the service knows its keys."""
    _work(site)


def careless(site: Site) -> None:
    """Write an order down, and have its effect then."""
    done = site.worker_dir / "done.txt"
    finished = done.read_text(encoding="utf-8").split() if done.exists() else []
    tell()
    for order in site.offered:
        if order.command_id in finished:
            continue
        with done.open("a", encoding="utf-8") as file:
            file.write(f"{order.command_id}\n")
        crash_point("order.write.after", order=order.command_id)
        tell()
        charge(site, order.command_id)


def orders(_seed: int) -> Workload:
    """Ask for two orders."""
    return Workload((Command("o1"), Command("o2")), fresh=Command("o3"))


def effects() -> EffectsService:
    """Make the service; its modules are not for the workers, which would take long to start."""
    from harness.world.services.effects import EffectsService  # noqa: PLC0415

    return EffectsService()


ORACLES = (NoEffectTwice(frozenset({"charge"})), EveryCommandHasEffect("charge"))
CAREFUL, CARELESS = (
    Scenario(
        name,
        worker,
        orders,
        ORACLES,
        pin=pin,
        points=(__name__,),
        must_reach_all=False,
        services=(effects,),
    )
    for name, worker, pin in (
        ("careful", careful, Scenario.pin),
        ("careless", careless, broken_by("every-command-has-effect")),
    )
)
