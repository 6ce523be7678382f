"""Oracles: their protocol, the evidence that they are shown, and their findings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.model.image import Image
    from harness.model.trace import Death, Hit
    from harness.model.workload import Command, Workload


class OracleStatus(Enum):
    """The answer of an oracle."""

    HOLDS = "holds"
    BROKEN = "broken"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer of an oracle, with its evidence.

    Attributes:
        answer: What was found.
        evidence: For everything but *holds*: one sentence per fact, most telling first, the same
            in every run with the same seed.
    """

    answer: OracleStatus
    evidence: tuple[str, ...] = ()


def broken_if(evidence: Iterable[str]) -> Finding:
    """Return *broken* with this evidence, or *holds* when there is none."""
    facts = tuple(evidence)
    return Finding(OracleStatus.BROKEN if facts else OracleStatus.HOLDS, facts)


def first_seen(facts: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return each fact once, with the time at which it was seen first.

    Args:
        facts: When a fact was seen, and the fact, in order of time.
    """
    seen: dict[str, str] = {}
    for when, fact in facts:
        seen.setdefault(fact, when)
    return tuple(f"{when}: {fact}" for fact, when in seen.items())


@dataclass(frozen=True, slots=True)
class EndedIncarnation:
    """One incarnation of an experiment, as its supervisor saw it.

    Attributes:
        number: From 1.
        hits: Every point that it reached, in order.
        death: How it ended.
        before: What was durable when it started.
        after: What was durable when it had ended: for a struck one, the crash image.
        hits_left_out: How many more hits there were, of labels that it hit very often.
    """

    number: int
    hits: tuple[Hit, ...]
    death: Death
    before: Image
    after: Image
    hits_left_out: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that an experiment left to judge by.

    The struck incarnations are followed by two more without a fault: one that recovers and becomes
    quiet, and one that is started again, becomes quiet, is offered the fresh command and becomes
    quiet again.

    Attributes:
        workload: What was asked of the worker.
        struck: The incarnations that were struck, in order.
        recovered: The incarnation that ran until quiet after the last strike.
        restarted: The incarnation after it, the last one of all.
        after_restart: What was durable when the restarted worker was quiet, before the fresh
            command.
        survivors: Processes that were left when every incarnation was dead.
        failed: How the recovery or the restart failed; empty when neither did. Otherwise the
            incarnation that failed, and what it left, stand for those that never were.
        fresh_offered: Whether the worker was offered the fresh command.
    """

    workload: Workload
    struck: tuple[EndedIncarnation, ...]
    recovered: EndedIncarnation
    restarted: EndedIncarnation
    after_restart: Image
    survivors: tuple[str, ...]
    failed: str = ""
    fresh_offered: bool = True

    @property
    def asked(self) -> tuple[Command, ...]:
        """Every command that the worker was offered."""
        fresh = (self.workload.fresh,) if self.fresh_offered else ()
        return (*self.workload.commands, *fresh)

    @property
    def settled(self) -> Image:
        """What was durable when the worker had recovered and was quiet."""
        return self.recovered.after

    @property
    def final(self) -> Image:
        """What was durable at the very end."""
        return self.restarted.after

    @property
    def incarnations(self) -> tuple[EndedIncarnation, ...]:
        """Every incarnation, in order."""
        if self.restarted is self.recovered:
            return (*self.struck, self.recovered)
        return (*self.struck, self.recovered, self.restarted)

    @property
    def images(self) -> tuple[tuple[str, Image], ...]:
        """Every state that was durable when no incarnation ran, in order, and when it was."""
        crashed = tuple((f"after incarnation {life.number}", life.after) for life in self.struck)
        if self.restarted is self.recovered:
            return (*crashed, ("after the recovery that failed", self.settled))
        return (
            *crashed,
            ("at rest", self.settled),
            ("after a second restart", self.after_restart),
            ("at the end", self.final),
        )


class Oracle(Protocol):
    """A named check.

    Attributes:
        name: Lower-case words joined by ``-``; unique in a scenario.
        promise: What must hold, in one sentence.

    An oracle may also have ``remedy``, a sentence on what usually restores its promise; reports
    show it under *What to change*.
    """

    @property
    def name(self) -> str:
        """Unique name."""

    @property
    def promise(self) -> str:
        """What must hold, in one sentence."""

    def check(self, evidence: Evidence) -> Finding:
        """Look at the evidence and answer; must not change it."""
