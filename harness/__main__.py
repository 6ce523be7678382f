"""Entry of the command ``crash-harness`` and of ``python -m harness``.

A spawned lane imports this module once more, as it does with every main module, and has no use for
what a command needs: so the command itself is imported when it is called.
"""

from __future__ import annotations

import signal
import sys

USAGE = 2
INTERRUPTED = 128 + signal.SIGINT


def main() -> None:
    """Run the command.

    Raises:
        SystemExit: Always, with the exit code.
    """
    try:
        from harness.cli.run import main as run  # noqa: PLC0415 - see the module's docstring

        run()
    except ModuleNotFoundError as missing:
        sys.stderr.write(
            f"crash-harness: {missing.name} is not installed; install crash-harness[runner]\n"
        )
        raise SystemExit(USAGE) from None
    except KeyboardInterrupt:
        sys.stderr.write("crash-harness: interrupted; no record was written\n")
        raise SystemExit(INTERRUPTED) from None


if __name__ == "__main__":
    main()
