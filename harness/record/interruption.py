"""Why a run ended before it was through, and what the command returns then."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.model.errors import UsageError
from harness.record.outcome import ExitCode, exit_code, strongest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.record.outcome import ScenarioOutcome

_BY_SIGNAL = {
    signal.SIGINT: ("interrupted by SIGINT (Ctrl-C)", ExitCode.INTERRUPTED),
    signal.SIGTERM: ("interrupted by SIGTERM", ExitCode.TERMINATED),
}


@dataclass(frozen=True, slots=True)
class Interruption:
    """Why a run ended before it was through.

    Attributes:
        why: The reason, in words that go on from "the run was".
        exit_code: What the command returns, whatever the experiments that have finished came to.
    """

    why: str
    exit_code: ExitCode

    @classmethod
    def by_signal(cls, number: int) -> Interruption:
        """Return that the run was asked to stop by SIGINT or SIGTERM."""
        return cls(*_BY_SIGNAL[signal.Signals(number)])

    @classmethod
    def by_fault(cls, error: BaseException) -> Interruption:
        """Return that the harness itself failed, or could not do what was asked of it."""
        said = str(error) or type(error).__name__
        if isinstance(error, UsageError):
            return cls(f"interrupted, as it could not go on: {said}", ExitCode.USAGE)
        return cls(f"interrupted by an error of the harness: {said}", ExitCode.HARNESS)


def exit_code_of_run(
    outcomes: tuple[ScenarioOutcome, ...], interruption: Interruption | None
) -> ExitCode:
    """Return the exit code of a run: one that is not through is neither green nor broken."""
    return exit_code(outcomes) if interruption is None else interruption.exit_code


def is_through(code: ExitCode) -> bool:
    """Tell by its exit code whether a run came to its end."""
    return code in {ExitCode.AS_PINNED, ExitCode.BROKEN, ExitCode.INCONCLUSIVE}


def exit_code_of_runs(codes: Sequence[ExitCode]) -> ExitCode:
    """Return the exit code of several runs of one command, of which at most the last was cut short.

    Args:
        codes: Those of the runs, in their order.
    """
    cut_short = [code for code in codes if not is_through(code)]
    return cut_short[-1] if cut_short else strongest(codes)
