"""Wires the worker. The only module that knows every layer.

``run(settings)`` is the worker as it is. A variant replaces a part (`Parts`), and a test may put a
wrapper around every port that does I/O (`PortWrapper`).
"""

from __future__ import annotations

import argparse
import asyncio
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from worker_under_test.adapters.http_control_plane import HttpControlPlane
from worker_under_test.adapters.http_effects import HttpEffects
from worker_under_test.adapters.http_link import HttpLink
from worker_under_test.adapters.http_remote import HttpRemote
from worker_under_test.adapters.ids import RandomIds, SeededIds
from worker_under_test.adapters.local_file_space import LocalFileSpace
from worker_under_test.adapters.local_processes import LocalProcesses
from worker_under_test.adapters.local_tree_space import LocalTreeSpace
from worker_under_test.adapters.log_observation import LogObservation
from worker_under_test.adapters.sqlite_store import SqliteStore
from worker_under_test.adapters.sse_stream import SseCommandStream
from worker_under_test.adapters.system_clock import SystemClock
from worker_under_test.application.cleanup import CleanUp, WithCleanUp
from worker_under_test.application.runtime import Roles, Runtime
from worker_under_test.capabilities.registry import installed
from worker_under_test.domain.errors import DomainError
from worker_under_test.domain.registration import NodeInventory, Registration
from worker_under_test.ports.bundle import Tools
from worker_under_test.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from worker_under_test.ports.capability import CapabilityExecutor
    from worker_under_test.ports.clock import Clock
    from worker_under_test.ports.command_stream import CommandStream
    from worker_under_test.ports.control_plane import ControlPlane
    from worker_under_test.ports.effects import Effects
    from worker_under_test.ports.file_space import FileSpace
    from worker_under_test.ports.id_generator import IDGenerator
    from worker_under_test.ports.local_store import LocalStore
    from worker_under_test.ports.observation import Observation
    from worker_under_test.ports.processes import Processes
    from worker_under_test.ports.remote import Remote
    from worker_under_test.ports.step_store import StepStore
    from worker_under_test.ports.tree_space import TreeSpace

Port = TypeVar("Port")


class PortWrapper(Protocol):
    """Puts something around a port."""

    def __call__(self, name: str, port: Port) -> Port:
        """Return what takes the port's place.

        Args:
            name: ``store``, ``control``, ``commands``, ``files``, ``trees``, ``processes``,
                ``remote``, ``steps``, ``effects`` or ``clock``.
            port: The port.
        """


def unwrapped(name: str, port: Port) -> Port:  # noqa: ARG001 - the wrapper that does nothing
    """Return the port itself; the `PortWrapper` of a worker in use."""
    return port


def _store(settings: Settings) -> LocalStore:
    return SqliteStore(settings.root / "worker.db", init=settings.init)


def _network(settings: Settings) -> tuple[ControlPlane, CommandStream]:
    link = HttpLink(settings.coordinator)
    return HttpControlPlane(link), SseCommandStream(link)


def _files(settings: Settings) -> FileSpace:
    return LocalFileSpace(settings.root / "files")


def _ids(settings: Settings) -> IDGenerator:
    return RandomIds() if settings.id_seed is None else SeededIds(settings.id_seed)


def _steps(store: LocalStore) -> StepStore:
    if not isinstance(store, SqliteStore):
        raise TypeError(f"a {type(store).__name__} keeps no steps; say how in Parts.steps")
    return store.steps


def _effects(settings: Settings) -> Effects:
    return HttpEffects(settings.coordinator)


def _trees(settings: Settings) -> TreeSpace:
    return LocalTreeSpace(settings.root / "files", settings.root / "inputs")


def _processes(settings: Settings) -> Processes:
    return LocalProcesses(settings.root / "processes")


def _remote(settings: Settings) -> Remote:
    return HttpRemote(settings.coordinator)


@dataclass(frozen=True, slots=True)
class Parts:
    """How each part of a worker is made; ``dataclasses.replace`` swaps one.

    Attributes:
        store: Makes the local store.
        network: Makes control plane and command stream, which share their connections.
        files: Makes the file space.
        clock: Makes the clock.
        ids: Makes the id generator.
        observation: Makes the observation.
        steps: Finds the store of steps in the local store.
        effects: Makes the way to the outside of steps.
        trees: Makes the tree space.
        processes: Makes the processes.
        remote: Makes the line to the services outside.
        capabilities: Makes the capabilities, given the (wrapped) tools.
        roles: The classes the runtime is made of.
    """

    store: Callable[[Settings], LocalStore] = _store
    network: Callable[[Settings], tuple[ControlPlane, CommandStream]] = _network
    files: Callable[[Settings], FileSpace] = _files
    clock: Callable[[], Clock] = SystemClock
    ids: Callable[[Settings], IDGenerator] = _ids
    observation: Callable[[], Observation] = LogObservation
    steps: Callable[[LocalStore], StepStore] = _steps
    effects: Callable[[Settings], Effects] = _effects
    trees: Callable[[Settings], TreeSpace] = _trees
    processes: Callable[[Settings], Processes] = _processes
    remote: Callable[[Settings], Remote] = _remote
    capabilities: Callable[[Tools], CapabilityExecutor] = installed
    roles: Roles = field(default_factory=Roles)


def build(
    settings: Settings, *, parts: Parts | None = None, wrap: PortWrapper = unwrapped
) -> Runtime:
    """Put a worker together; nothing is opened yet (REG-08).

    Args:
        settings: What it is started with.
        parts: How its parts are made.
        wrap: Put around each port that does I/O or waits.

    Returns:
        A runtime, to be run once.

    Raises:
        DomainError: Of kind invalid, if the settings do not make a registration.
    """
    parts = parts or Parts()
    control, commands = parts.network(settings)
    raw_store = parts.store(settings)
    store = wrap("store", raw_store)
    clock = wrap("clock", parts.clock())
    tools = Tools(
        files=wrap("files", parts.files(settings)),
        trees=wrap("trees", parts.trees(settings)),
        processes=wrap("processes", parts.processes(settings)),
        remote=wrap("remote", parts.remote(settings)),
        steps=wrap("steps", parts.steps(raw_store)),
        effects=wrap("effects", parts.effects(settings)),
        clock=clock,
    )
    return Runtime(
        Registration(
            settings.instance_id,
            settings.name,
            settings.node_id,
            NodeInventory(settings.cpu_capacity_millis, settings.capacity),
        ),
        control=wrap("control", control),
        commands=wrap("commands", commands),
        store=store,
        capabilities=WithCleanUp(parts.capabilities(tools), CleanUp(tools.files, store)),
        ids=parts.ids(settings),
        observation=parts.observation(),
        clock=clock,
        retry_initial_s=settings.retry_initial_s,
        roles=parts.roles,
    )


async def run(
    settings: Settings,
    *,
    parts: Parts | None = None,
    wrap: PortWrapper = unwrapped,
    stop: asyncio.Event | None = None,
) -> None:
    """Run a worker until it is stopped; leaves no thread and no connection of its own.

    Args:
        settings: What it is started with.
        parts: How its parts are made.
        wrap: Put around each port that does I/O or waits.
        stop: Set to end gracefully; cancelling does the same.

    Raises:
        Exception: What ended the worker; see `Runtime.run`.
    """
    await build(settings, parts=parts, wrap=wrap).run(stop)


async def _run_until_signal(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await run(settings, stop=stop)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a worker from the command line until SIGTERM or SIGINT.

    Args:
        arguments: The command line without the program's name; None takes the process's own.
    """
    parser = argparse.ArgumentParser(prog="worker", description="The reference worker.")
    parser.add_argument("--root", type=Path, required=True, help="directory of durable state")
    parser.add_argument("--coordinator", required=True, help="unix:PATH or http://HOST:PORT")
    parser.add_argument("--instance-id", required=True, help="identity at the first start")
    parser.add_argument(
        "--init", action="store_true", help="a first start: make the database if there is none"
    )
    parser.add_argument("--capacity", type=int, default=4, help="most attempts open at once")
    parser.add_argument("--id-seed", help="make identities repeatable")
    given = parser.parse_args(arguments)
    settings = Settings(
        root=given.root,
        coordinator=given.coordinator,
        instance_id=given.instance_id,
        capacity=given.capacity,
        init=given.init,
        id_seed=given.id_seed,
    )
    try:
        asyncio.run(_run_until_signal(settings))
    except DomainError as error:
        raise SystemExit(f"worker: {error}") from error


if __name__ == "__main__":
    main()
