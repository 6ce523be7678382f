"""The payload of a workflow: its steps, read and checked."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker_under_test.checkpoint import StepDef, check_graph
from worker_under_test.checkpoint.graph import clean
from worker_under_test.domain.errors import DomainError, Kind

if TYPE_CHECKING:
    from worker_under_test.domain.command import Command
    from worker_under_test.domain.json_value import JsonValue

MAX_STEPS = 500
"""Most steps of one workflow; each may wait for all earlier ones."""

RECOMPUTE = "recompute"
"""The one recovery rule of a step: it is done again, under the key it had (PLN-30)."""


@dataclass(frozen=True, slots=True)
class WorkflowStep:
    """A step with what it does.

    Attributes:
        declared: Its id, and what it waits for.
        effect: The kind of its effect.
    """

    declared: StepDef
    effect: str


@dataclass(frozen=True, slots=True)
class WorkflowGraph:
    """The steps of a workflow.

    Attributes:
        steps: In the order of the command.
    """

    steps: tuple[WorkflowStep, ...]

    @property
    def declared(self) -> tuple[StepDef, ...]:
        """The steps as the planner wants them."""
        return tuple(step.declared for step in self.steps)

    @property
    def fingerprint(self) -> str:
        """Identity of ids, order and dependencies: a change is seen at a restart (ORC-08)."""
        facts = [[step.id, list(step.depends_on or ()), step.isolated] for step in self.declared]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]

    def defects(self) -> list[str]:
        """Say what is wrong with the graph; a run with a defect has no end (STP-21)."""
        return [f"{d.kind}: {d.step!r} {d.detail}" for d in check_graph(self.declared)]

    def predecessors(self) -> dict[str, tuple[str, ...]]:
        """Return what each step waits for: the same that its trust rests on (ORC-12)."""
        kept = clean(self.declared)
        ids = [step.id for step in kept.steps]
        return {
            step_id: tuple(ids[:number])
            if kept.by_position[number]
            else tuple(ids[other] for other in kept.named[number])
            for number, step_id in enumerate(ids)
        }


def read_graph(command: Command) -> WorkflowGraph:
    """Read the steps of a command.

    Args:
        command: Its payload is ``{"steps": [STEP, ...]}``; a step has an ``id`` and may have
            ``label``, ``depends_on``, ``isolated``, ``effect`` (a kind, ``step`` by default) and
            ``recovery`` (``recompute``).

    Raises:
        DomainError: Of kind invalid, if the payload is not well formed.
    """
    steps = command.payload.get("steps")
    if not isinstance(steps, list) or not 1 <= len(steps) <= MAX_STEPS:
        raise DomainError(Kind.INVALID, f"steps is not a list of 1 to {MAX_STEPS} steps")
    return WorkflowGraph(tuple(_read_step(step) for step in steps))


def _read_step(value: JsonValue) -> WorkflowStep:
    if not isinstance(value, dict):
        raise DomainError(Kind.INVALID, "a step is not an object")
    isolated, depends_on = value.get("isolated", False), value.get("depends_on") or []
    if not isinstance(isolated, bool):
        raise DomainError(Kind.INVALID, "isolated is not true or false")
    if not isinstance(depends_on, list) or not all(isinstance(name, str) for name in depends_on):
        raise DomainError(Kind.INVALID, "depends_on is not a list of ids")
    if value.get("recovery", RECOMPUTE) != RECOMPUTE:
        raise DomainError(Kind.INVALID, f"the recovery of a step can only be {RECOMPUTE!r}")
    names = [name for name in depends_on if isinstance(name, str)]
    return WorkflowStep(
        StepDef(_text(value, "id", ""), _text(value, "label", ""), names, isolated=isolated),
        _text(value, "effect", "step") or "step",
    )


def _text(value: dict[str, JsonValue], key: str, default: str) -> str:
    text = value.get(key, default)
    if not isinstance(text, str):
        raise DomainError(Kind.INVALID, f"{key} of a step is not a text")
    return text
