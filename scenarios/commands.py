"""The capability ``command``: children that live on, are killed, or leave their pid to others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.oracles.effects import read_ledger
from harness.oracles.processes import NoSurvivors, StrangersLeftAlone
from scenarios.capabilities import AROUND, child, offers
from scenarios.capability_rules import capability_scenario, oracles_for
from scenarios.children import STRANGER, WENT_ON, kill_children, reuse_pids

if TYPE_CHECKING:
    from pathlib import Path

COMMAND_POINTS = (
    "process.spawn.before",
    "process.spawn.after",
    "process.identity.before",
    "process.wait.before",
    "process.result.after",
    "process.find.before",
)


def strangers(world_dir: Path) -> tuple[str, ...]:
    """Return the strangers that there are."""
    return _named(world_dir, STRANGER)


def strangers_that_went_on(world_dir: Path) -> tuple[str, ...]:
    """Return the strangers that somebody waited for; see `scenarios.children.let_go_on`."""
    return _named(world_dir, WENT_ON)


def _named(world_dir: Path, kind: str) -> tuple[str, ...]:
    return tuple(f"{STRANGER}:{each.key}" for each in read_ledger(world_dir) if each.kind == kind)


AMONG_STRANGERS = (
    *(oracle for oracle in oracles_for({}) if not isinstance(oracle, NoSurvivors)),
    NoSurvivors(strangers=f"{STRANGER}:"),
    StrangersLeftAlone(strangers, strangers_that_went_on),
)

COMMAND = capability_scenario(
    "command",
    offers(child("p1"), child("p2", code=3)),
    strike=(*AROUND, *COMMAND_POINTS),
)

COMMAND_KILLED = capability_scenario(
    "command-killed",
    offers(child("p1")),
    between=kill_children,
    strike=(*AROUND, *COMMAND_POINTS),
)

COMMAND_PID_REUSED = capability_scenario(
    "command-pid-reused",
    offers(child("p1")),
    between=reuse_pids,
    strike=(*AROUND, *COMMAND_POINTS),
    oracles=AMONG_STRANGERS,
)
