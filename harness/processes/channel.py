"""Messages between a lane and its supervisor's process: plain values over a stream socket.

Light on purpose: the process that forks incarnations imports it, and whatever runs there between
two forks costs page faults. `marshal` is built in, and both ends are the same interpreter.
"""

from __future__ import annotations

import marshal
import os
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    Plain: TypeAlias = (
        bool | int | float | str | bytes | Sequence["Plain"] | Mapping[str, "Plain"] | None
    )

_LENGTH = 4
_CHUNK = 1 << 16


class Channel:
    """One end.

    Args:
        fd: A connected, blocking stream socket.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._rest = b""

    def send(self, value: Plain) -> None:
        """Send a value.

        Args:
            value: The value.

        Raises:
            OSError: The other end is gone.
        """
        body = marshal.dumps(value)  # type: ignore[arg-type]  # `Sequence` is wider
        message = len(body).to_bytes(_LENGTH, "big") + body
        while message:
            message = message[os.write(self.fd, message) :]

    def receive(self) -> Plain:
        """Wait for a value.

        Raises:
            EOFError: The other end is gone.
        """
        self._fill(_LENGTH)
        end = _LENGTH + int.from_bytes(self._rest[:_LENGTH], "big")
        self._fill(end)
        body, self._rest = self._rest[_LENGTH:end], self._rest[end:]
        return cast("Plain", marshal.loads(body))  # noqa: S302 - both ends are our own

    def close(self) -> None:
        """Close this end."""
        os.close(self.fd)

    def _fill(self, length: int) -> None:
        while len(self._rest) < length:
            more = os.read(self.fd, _CHUNK)
            if not more:
                raise EOFError
            self._rest += more
