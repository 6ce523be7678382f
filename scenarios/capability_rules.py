"""What must hold of every capability: decisions, effects outside, files; and their scenarios."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import TYPE_CHECKING, cast

from harness.model.workload import Command
from harness.oracles.effects import NoEffectTwice, read_ledger
from harness.oracles.mailbox.agreement import EventsOnce, InboxOutboxConsistent
from harness.oracles.mailbox.artifacts import ArtifactsWhole, InputKept, NothingOutside, TreesWhole
from harness.oracles.mailbox.checkpoints import CheckpointsAdvance
from harness.oracles.mailbox.commands import CommandsEnd, FreshGoesThrough
from harness.oracles.mailbox.decisions import DecisionsRight, RestartChangesNothing
from harness.oracles.mailbox.remote_effects import OneEffectPerCommand, UnknownLeftAlone
from harness.oracles.processes import NoSurvivors
from harness.scenario import HOLDS, Scenario
from harness.world.coordinator.service import Coordinator
from harness.world.services.receiver import FILE_NAME as NOTIFICATIONS
from harness.world.services.receiver import read_notifications
from harness.world.services.render_jobs import FILE_NAME as JOBS
from harness.world.services.render_jobs import read_render_jobs
from scenarios.capability_worker import capability_worker, warm_capabilities
from scenarios.reference import GROUP, POINTS, right_decision, world_view
from scenarios.reference_books import ARTIFACTS, read_books, worker_view
from scenarios.reference_worker import QUIET_AT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from harness.model.canonical_json import JsonObject
    from harness.model.oracle import Oracle
    from harness.model.workload import Workload
    from harness.oracles.mailbox.worker_state import AttemptRow
    from harness.scenario import Pin
    from harness.world.service import Service
    from scenarios.capability_worker import BetweenLives
    from worker_under_test.main import Parts

PLACES = ("worker.db", "files", "processes", "inputs")


def asks(command_id: str, capability: str, payload: JsonObject) -> Command:
    """Return a command for a capability."""
    return Command(command_id, {"capability": capability, "version": 1, "payload": payload})


def effects_of_commands(world_dir: Path) -> tuple[str, ...]:
    """Return the command of every effect: jobs by their spec, notifications by their channel.

    Children record the effect ``process`` themselves, with the command as key.
    """
    jobs = read_render_jobs(world_dir) if (world_dir / JOBS).exists() else ()
    sent = read_notifications(world_dir) if (world_dir / NOTIFICATIONS).exists() else ()
    return (
        *(str(job.spec["id"]) for job in jobs),
        *(each.channel for each in sent),
        *(effect.key for effect in read_ledger(world_dir) if effect.kind == "process"),
    )


CHILD_ENDS = "child-ends-once"
CHILD_ENDS_PROMISE = "a child comes to its end at most once, and did so if its command succeeded"


def ends_of_children(world_dir: Path) -> tuple[str, ...]:
    """Return the command of every child that came to its end; it records that itself."""
    return tuple(each.key for each in read_ledger(world_dir) if each.kind == "process_end")


def _is_child(command_id: str) -> bool:
    return command_id.startswith("p")


def decision_by_policy(attempt: AttemptRow) -> str:
    """Say what recovery must decide: the rule of its kind, written anew (REC-01..REC-17)."""
    capability = attempt.capability.partition("/")[0]
    if attempt.state == "PENDING" or capability in ("compute", "export", "control.cleanup"):
        return right_decision(attempt)
    if capability in ("transfer", "unpack"):
        inside = {"transfer": "resume", "unpack": "recompute"}
        return "cancel" if attempt.cancelled else inside[capability]
    if not attempt.evidence:
        return "start"
    saved = json.loads(attempt.evidence)
    if capability == "render":
        can_be_told = saved["job_id"] or saved["lookup"] or saved["idempotent"]
        return "query" if can_be_told else "unknown"
    if capability == "notify":
        return "repeat" if saved["honours_keys"] else "unknown"
    return "find_process" if capability == "command" else "unknown"


def is_temporary(path: str) -> bool:
    """Tell whether a file, or the tree that it is in, is not at a final path."""
    return any(name.endswith(".tmp") for name in path.split("/"))


def files_of(contents: Mapping[str, Mapping[str, bytes]], command: Command) -> dict[str, str]:
    """Work out the files of a command from what each command asks for.

    Args:
        contents: By command, the content of each file by its path in the command's directory.
        command: The command.
    """
    asked = contents.get(command.command_id, {})
    return {
        f"{command.command_id}/{path}": hashlib.sha256(content).hexdigest()
        for path, content in asked.items()
    }


def oracles_for(
    contents: Mapping[str, Mapping[str, bytes]], *, files: tuple[Oracle, ...] | None = None
) -> tuple[Oracle, ...]:
    """Return the oracles of a scenario.

    Args:
        contents: The files that commands ask for; see `files_of`.
        files: What judges files instead, if it is not their content.
    """
    expected = partial(files_of, contents)
    if files is None:
        files = (
            ArtifactsWhole(read_books, ARTIFACTS, expected, is_temporary),
            TreesWhole(ARTIFACTS, expected),
        )
    return (
        CommandsEnd(),
        InboxOutboxConsistent(read_books),
        NoEffectTwice(),
        EventsOnce(),
        CheckpointsAdvance(read_books),
        DecisionsRight(read_books, decision_by_policy),
        OneEffectPerCommand(effects_of_commands, _has_effects),
        OneEffectPerCommand(ends_of_children, _is_child, CHILD_ENDS, CHILD_ENDS_PROMISE),
        UnknownLeftAlone(read_books, effects_of_commands),
        InputKept(read_books),
        NothingOutside(PLACES),
        *files,
        FreshGoesThrough(read_books),
        RestartChangesNothing(worker_view, world_view),
        NoSurvivors(),
    )


def _has_effects(command_id: str) -> bool:
    """Tell by its name whether a command is for a job, a notification or a child."""
    return command_id[0] in "rnp"


def capability_scenario(
    name: str,
    workload: Callable[[int], Workload],
    services: tuple[Callable[[], Service], ...] = (),
    contents: Mapping[str, Mapping[str, bytes]] | None = None,
    *,
    parts: Parts | None = None,
    pin: Pin = HOLDS,
    strike: tuple[str, ...] = (),
    between: BetweenLives | None = None,
    oracles: tuple[Oracle, ...] | None = None,
) -> Scenario:
    """Return a scenario of the reference worker's capabilities.

    Args:
        name: Its name.
        workload: Draws the workload.
        services: The world's services besides the coordinator.
        contents: The files that commands ask for; see `files_of`.
        parts: The parts in which the worker differs; a known-bad one replaces some.
        pin: What is expected.
        strike: The labels to strike; empty for all.
        between: What happens to the worker's directory before each life.
        oracles: What judges it, if not the usual ones.
    """
    return Scenario(
        name=name,
        worker=partial(capability_worker, parts=parts, between=between),
        workload=workload,
        oracles=oracles if oracles is not None else oracles_for(contents or {}),
        pin=pin,
        points=(*POINTS, "worker_under_test.capabilities"),
        must_reach_all=pin == HOLDS,
        together=GROUP if pin == HOLDS else "",
        services=(cast("Callable[[], Service]", Coordinator.from_environment), *services),
        quiet_at=QUIET_AT,
        warm=partial(warm_capabilities, parts=parts),
        strike=strike,
    )
