"""Messages between the owner of a world and its process, over the control pipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.model.workload import Command, Workload
    from harness.world.service import Service

Transport = Literal["unix", "tcp"]
"""How the worker reaches the world."""

SOCKET_NAME = "w.sock"
"""Name of the Unix socket in the world's directory."""


class Pipe(Protocol):
    """One end of the control pipe, as `multiprocess.connection.Connection` has it."""

    def send_bytes(self, buf: bytes) -> None:
        """Send a pickled object; the other end gets a copy."""

    def recv(self) -> object:
        """Wait for an object; EOFError when the other end is closed."""

    def poll(self, timeout: float) -> bool:
        """Wait so many seconds until there is something to receive."""

    def fileno(self) -> int:
        """Return the file descriptor."""

    def close(self) -> None:
        """Close this end."""


@dataclass(frozen=True, slots=True)
class Open:
    """Open services on a directory. The answer's value is their endpoint."""

    world_dir: Path
    services: tuple[Callable[[], Service], ...]
    workload: Workload
    transport: Transport


@dataclass(frozen=True, slots=True)
class Offer:
    """Offer a command to the open services."""

    command: Command


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Copy the directory of the open services."""

    destination: Path


@dataclass(frozen=True, slots=True)
class CloseServices:
    """Close the services; their directory stays."""


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Close what is open and end the process."""


Call = Open | Offer | Snapshot | CloseServices | Shutdown


@dataclass(frozen=True, slots=True)
class Done:
    """The call did what it says."""

    value: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The call did not.

    Attributes:
        message: Why, for the reader.
        usage: Whether the caller asked for something impossible.
    """

    message: str
    usage: bool = False


Reply = Done | Failed
