"""The scenario of the benchmarks: the ledger worker with three oracles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.ledger_worker import COMMANDS, live
from harness.model.workload import Command, Workload
from harness.oracles.effects import EveryCommandHasEffect, NoEffectTwice
from harness.oracles.processes import NoSurvivors
from harness.scenario import Scenario

if TYPE_CHECKING:
    from harness.model.site import Site

WARM_UPS = 10
"""The interpreter adapts bytecode during the first calls, which every fork would do again."""


def _worker(site: Site) -> None:
    offered = tuple(command.command_id for command in site.offered)
    live(site.worker_dir, site.world_dir, offered)


def _warm_up(site: Site) -> None:
    for _ in range(WARM_UPS):
        _worker(site)


def _workload(_seed: int) -> Workload:
    return Workload(tuple(map(Command, COMMANDS)), fresh=Command("fresh"))


SCENARIO = Scenario(
    name="cycles",
    worker=_worker,
    workload=_workload,
    oracles=(NoEffectTwice(), EveryCommandHasEffect("charge"), NoSurvivors()),
    points=("benchmarks",),
    warm=_warm_up,
)
