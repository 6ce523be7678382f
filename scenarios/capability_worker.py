"""The reference worker with children that can be watched, and with a life between its lives."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from harness.world.ledger import FILE_NAME as LEDGER
from scenarios.reference_worker import reference_worker, warm_up
from worker_under_test.adapters.local_processes import LocalProcesses
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from harness.scenario import Site
    from worker_under_test.ports.processes import Processes, ProcessIdentity
    from worker_under_test.settings import Settings

BetweenLives: TypeAlias = Callable[[Path, int], None]
"""Changes a worker's directory before the incarnation with a number begins."""

LEDGER_VARIABLE = "SCENARIO_LEDGER"
LOOK_S = 0.002

CHILD = """
printf '{"kind": "process", "key": "%s", "token": "%s"}\\n' "$1" "$WORKER_PROCESS_TOKEN" \\
    >>"$SCENARIO_LEDGER"
: >begun
until [ -e go ]; do sleep 0.003; done
printf '{"kind": "process_end", "key": "%s", "token": "%s"}\\n' "$1" "$WORKER_PROCESS_TOKEN" \\
    >>"$SCENARIO_LEDGER"
echo "$2"
exit "$3"
"""
"""A child's program: records that it ran, and goes on when it is waited for."""


class WatchedProcesses(LocalProcesses):
    """Children that have begun when `spawn` returns, and end only while they are waited for.

    So what they leave does not depend on how fast the machine is: the effect is recorded before
    anything that follows the start, and the end comes after everything that precedes the wait.
    """

    async def spawn(self, token: str, argv: list[str]) -> ProcessIdentity:
        """Start a child and see it begin."""
        identity = await super().spawn(token, argv)
        while not (self.directory(token) / "begun").exists():  # noqa: ASYNC110 - another process
            await asyncio.sleep(LOOK_S)
        return identity

    async def wait(self, identity: ProcessIdentity) -> None:
        """Let a child go on, and wait for it; the others stand where they are."""
        with suppress(FileNotFoundError):  # It is over already.
            (Path(f"/proc/{identity.pid}/cwd").readlink() / "go").touch()  # noqa: ASYNC240
        await super().wait(identity)


def watched(settings: Settings) -> Processes:
    """Make the processes."""
    return WatchedProcesses(settings.root / "processes")


def with_watched(parts: Parts | None) -> Parts:
    """Return parts with watched children, unless a variant has children of its own."""
    given = parts or Parts()
    return given if given.processes is not Parts().processes else replace(given, processes=watched)


def capability_worker(
    site: Site, parts: Parts | None = None, between: BetweenLives | None = None
) -> None:
    """Live as the reference worker until the end.

    Args:
        site: Where it lives.
        parts: How its parts are made.
        between: What happened before.
    """
    os.environ[LEDGER_VARIABLE] = str(site.world_dir / LEDGER)
    if between is not None:
        between(site.worker_dir, site.incarnation)
    reference_worker(site, with_watched(parts), capacity=8)


def warm_capabilities(site: Site, parts: Parts | None = None) -> None:
    """Live until idle and end gracefully.

    Args:
        site: Where it lives.
        parts: How its parts are made.
    """
    os.environ[LEDGER_VARIABLE] = str(site.world_dir / LEDGER)
    warm_up(site, with_watched(parts), capacity=8)
