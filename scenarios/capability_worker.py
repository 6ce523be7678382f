"""The reference worker with children that can be watched, and with a life between its lives."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from harness.world.ledger import FILE_NAME as LEDGER
from scenarios.children import LEDGER_VARIABLE, WatchedProcesses
from scenarios.reference_worker import reference_worker, warm_up
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from harness.model.site import Site
    from worker_under_test.ports.processes import Processes
    from worker_under_test.settings import Settings

BetweenLives: TypeAlias = Callable[[Path, int], None]
"""Changes a worker's directory before the incarnation with a number begins."""


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
