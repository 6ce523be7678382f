"""The use case: the same request under several seeds, a session and a record for each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.explore.session import run_session
from harness.record.interruption import is_through

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harness.explore.run_handler import RunHandler
    from harness.explore.session_request import SessionRequest, SessionResult
    from harness.explore.stop_signals import StopSignals


def run_seeds(
    request: SessionRequest,
    seeds: Iterable[int],
    make_handler: Callable[[], RunHandler],
    stop: StopSignals | None = None,
) -> Iterator[tuple[int, SessionResult]]:
    """Run a session for each seed, one after the other; one that is cut short is the last.

    Args:
        request: What to do; its seed is not used. A run that it goes on with is that of the first
            seed.
        seeds: The seeds.
        make_handler: Makes what is told of one session.
        stop: Signals that end the session that is running, and with it all.

    Yields:
        Each seed with what its session came to.

    Raises:
        UnknownNameError: As `run_session`.
        UsageError: As `run_session`.
        HarnessError: As `run_session`.
    """
    for seed in seeds:
        result = run_session(replace(request, seed=seed), make_handler(), stop)
        yield seed, result
        if not is_through(result.exit_code):
            return
        request = replace(request, resumed=None)
        if (said := request.command) is not None:
            before = {**said["before"], str(seed): int(result.exit_code)}
            request = replace(request, command={**said, "before": before})
