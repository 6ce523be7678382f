"""Entry of the command ``crash-harness`` and of ``python -m harness``.

A spawned lane imports this module once more, as it does with every main module, and has no use for
what a command needs: so the command itself is imported when it is called.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

BURST_S = 1.0
"""How soon after a Ctrl-C another belongs to it, in seconds."""

USAGE = 2
INTERRUPTED = 128 + signal.SIGINT


class _Interrupts:
    """Ctrl-C of somebody who types it five times: it is heard once, and clearing up goes on.

    One that comes later raises again, for what catches the first might be stuck.
    """

    def __init__(self) -> None:
        self.leaving = False
        self._raised = -BURST_S
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._raise)

    def end(self) -> None:
        """Hear none any more: the exit code is decided."""
        self.leaving = True
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # In its last moments the interpreter gives every signal its first effect back.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

    def _raise(self, _number: int, _frame: FrameType | None) -> None:
        if not self.leaving and time.monotonic() - self._raised > BURST_S:
            self._raised = time.monotonic()
            raise KeyboardInterrupt


def _require_temporary_directory() -> None:
    """See that files can be made somewhere: modules that are imported look for it at once.

    Raises:
        SystemExit: There is no such directory.
    """
    try:
        tempfile.gettempdir()
    except FileNotFoundError as error:
        sys.stderr.write(
            f"crash-harness: {error.strerror}; set TMPDIR to a directory that can be written to\n"
        )
        raise SystemExit(USAGE) from None


def main() -> None:
    """Run the command.

    Raises:
        SystemExit: Always, with the exit code.
    """
    interrupts = _Interrupts()
    try:
        _require_temporary_directory()
        from harness.cli.run import main as run  # noqa: PLC0415 - see the module's docstring

        run()
    except ModuleNotFoundError as missing:
        sys.stderr.write(
            f"crash-harness: {missing.name} is not installed; install crash-harness[runner]\n"
        )
        raise SystemExit(USAGE) from None
    except KeyboardInterrupt:
        interrupts.leaving = True
        sys.stderr.write("crash-harness: interrupted; no record was written\n")
        raise SystemExit(INTERRUPTED) from None
    finally:
        interrupts.end()


if __name__ == "__main__":
    main()
