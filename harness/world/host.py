"""The world's process: serves the control pipe, and dies with its owner."""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import TYPE_CHECKING

from harness.model.errors import HarnessError, UsageError
from harness.processes.linux import die_with_parent
from harness.processes.pickling import portable
from harness.world.messages import (
    Call,
    CloseServices,
    Done,
    Failed,
    Offer,
    Open,
    Shutdown,
    Snapshot,
)
from harness.world.running_services import RunningServices
from harness.world.service import SharedResources

if TYPE_CHECKING:
    from harness.world.messages import Pipe, Reply

_LAST_CLOSING_S = 5.0


def serve(pipe: Pipe, owner_pid: int) -> None:
    """Run the world until its owner says stop, closes the pipe or dies.

    Args:
        pipe: The control pipe.
        owner_pid: Process id of the owner.
    """
    die_with_parent(owner_pid)
    # Ctrl-C goes to the whole foreground group; when the world ends is the owner's to decide.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What aiohttp would log are requests that a killed worker left unfinished.
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL + 1)
    asyncio.run(_Host(pipe).run())


class _Host:
    """The control calls, one at a time, as their order in the pipe."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._calls: asyncio.Queue[Call | Failed] = asyncio.Queue()
        self._running: RunningServices | None = None
        self._shared = SharedResources()
        self._gone = False

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._remember)
        loop.add_reader(self._pipe.fileno(), self._receive)
        self._answer(Done())
        stopped = False
        try:
            while not stopped:
                call = await self._calls.get()
                self._answer(call if isinstance(call, Failed) else await self._do(call))
                stopped = isinstance(call, Shutdown)
        finally:
            loop.remove_reader(self._pipe.fileno())

    def _receive(self) -> None:
        try:
            self._calls.put_nowait(_call(self._pipe.recv()))
        except (EOFError, OSError):
            self._gone = True
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())
            self._calls.put_nowait(Shutdown())
        except Exception as error:  # noqa: BLE001 - unpickling runs whatever the services import
            self._calls.put_nowait(Failed(f"the world cannot read the call: {_text(error)}"))

    def _answer(self, answer: Reply) -> None:
        if self._gone:
            return
        try:
            self._pipe.send_bytes(portable(answer))
        except OSError:
            self._gone = True  # The owner is gone, and the end of the pipe says so next.

    async def _do(self, call: Call) -> Reply:
        try:
            return Done(await self._perform(call))
        except HarnessError as error:
            return Failed(str(error), usage=isinstance(error, UsageError))
        except Exception as error:  # noqa: BLE001 - it is the owner's to handle, whatever it is
            return Failed(f"{type(call).__name__} failed in the world: {_text(error)}")

    async def _perform(self, call: Call) -> str:
        match call:
            case Open():
                if self._running is not None:
                    raise HarnessError("services are open already; close them first")
                self._running = await RunningServices.open(call, self._shared)
                return self._running.endpoint
            case Offer(command):
                await self._required().offer(command)
            case Snapshot(destination):
                await self._required().snapshot(destination)
            case CloseServices():
                await self._close(self._required())
            case Shutdown():
                async with asyncio.timeout(_LAST_CLOSING_S):
                    try:
                        if self._running is not None:
                            await self._close(self._running)
                    finally:
                        await self._shared.close()
        return ""

    def _required(self) -> RunningServices:
        if self._running is None:
            raise HarnessError("the world has no open services")
        return self._running

    async def _close(self, running: RunningServices) -> None:
        self._running = None
        await running.close()
        if bugs := running.guard.bugs():
            raise HarnessError(f"the world itself failed: {'; '.join(bugs)}")

    def _remember(self, _loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        if self._running is not None:
            known = error if isinstance(error, BaseException) else RuntimeError("no exception")
            self._running.guard.remember(str(context.get("message")), known)


def _call(received: object) -> Call:
    if isinstance(received, Call):
        return received
    raise TypeError(f"{type(received).__name__} is not a call")


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
