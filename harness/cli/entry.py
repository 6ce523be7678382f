"""How the command ends: every error becomes a message and an exit code of its own."""

from __future__ import annotations

import signal
import sys
import traceback

import click

from harness.cli.standard_streams import discard_output, prepare_streams
from harness.model.errors import HarnessError, UsageError
from harness.record.outcome import ExitCode
from harness.report.escaping import block

_ERROR_LINES = 200


def run_to_its_end(command: click.Command) -> None:
    """Run a command with the arguments of this process.

    Raises:
        SystemExit: With the exit code, always unless it is 0.
        KeyboardInterrupt: Of the user.
    """
    prepare_streams()
    # Ignored, it would reap children before anybody could ask how they ended (sigaction(2)).
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        try:
            command(standalone_mode=False)
        finally:
            sys.stdout.flush()
    except click.UsageError as error:
        error.show()
        raise SystemExit(ExitCode.USAGE) from None
    except click.Abort:
        raise KeyboardInterrupt from None
    except UsageError as error:
        sys.stderr.write(f"crash-harness: {_shown(error)}\n")
        raise SystemExit(ExitCode.USAGE) from None
    except (HarnessError, OSError) as error:
        sys.stderr.write(f"crash-harness: the harness failed: {_shown(error)}\n")
        raise SystemExit(_failed()) from None
    except Exception:  # noqa: BLE001 - Python's own code for it is 1, which says: an oracle broke
        sys.stderr.write(f"crash-harness: the harness failed:\n{traceback.format_exc()}")
        raise SystemExit(_failed()) from None


def _shown(error: HarnessError | OSError) -> str:
    """Show an error, which may quote what a worker wrote, so that a terminal obeys nothing."""
    return "\n".join(block(str(error), lines=_ERROR_LINES))


def _failed() -> ExitCode:
    """Give up what standard output did not take; else Python tries again, and exits with 120."""
    try:
        sys.stdout.flush()
    except OSError:
        discard_output()
    return ExitCode.HARNESS
