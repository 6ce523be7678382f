"""Remote effects: what services outside did for a command, by their own logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from harness.model.oracle import Finding, broken_if
from harness.world.coordinator.facts import ENDING_KINDS, read_facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.image import Image
    from harness.model.oracle import Evidence
    from harness.oracles.mailbox.worker_state import StateReader

EffectReader: TypeAlias = Callable[[Path], tuple[str, ...]]
"""Reads from a world's directory which commands had an effect: each once for each effect."""


@dataclass(frozen=True, slots=True)
class OneEffectPerCommand:
    """A command has at most one effect outside, and one that succeeded has exactly one (INV-3).

    Judged by the command, not by the identity that the worker gave its request: a worker that
    makes a new identity must not get away with it.

    Attributes:
        effects: Reader of the effects.
        about: Tells by its id whether a command has such effects.
    """

    effects: EffectReader
    about: Callable[[str], bool]
    name: str = "one-effect-per-command"
    promise: str = "a command has at most one effect outside, and exactly one if it succeeded"
    remedy: str = (
        "Save the key of the effect before it happens; after a restart look outside by that "
        "key, and repeat only what is proved not to have happened."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Count the effects of each command when the recovered worker is quiet, and at the end."""
        return broken_if(
            dict.fromkeys(
                fact for image in (evidence.settled, evidence.final) for fact in self._at(image)
            )
        )

    def _at(self, image: Image) -> Iterator[str]:
        counts = Counter(image.read(self.effects, image.world_dir))
        facts = image.read(read_facts, image.world_dir)
        ends = {e.command_id: e.kind for e in facts.events if e.kind in ENDING_KINDS}
        return self._faults(counts, ends)

    def _faults(self, counts: Counter[str], ends: dict[str, str]) -> Iterator[str]:
        for command_id, count in sorted(counts.items()):
            if count > 1:
                yield f"command {command_id!r} had {count} effects"
        for command_id, kind in sorted(ends.items()):
            if kind == "succeeded" and self.about(command_id) and not counts[command_id]:
                yield f"command {command_id!r} succeeded and had no effect"


@dataclass(frozen=True, slots=True)
class UnknownLeftAlone:
    """A command whose outcome is unknown causes no effect any more (INV-10, UNK-05).

    Attributes:
        read_books: Reader of the worker's books.
        effects: Reader of the effects.
    """

    read_books: StateReader
    effects: EffectReader
    name: str = "unknown-left-alone"
    promise: str = "a command whose outcome is unknown stays so and causes no further effect"
    remedy: str = (
        "Leave a command of unknown outcome alone until somebody settles it; what is learnt "
        "later is another fact, not its result."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Compare each image with every later one."""
        return broken_if(dict.fromkeys(self._faults(evidence)))

    def _faults(self, evidence: Evidence) -> Iterator[str]:
        unknown: dict[str, int] = {}
        for when, image in evidence.images:
            counts = Counter(image.read(self.effects, image.world_dir))
            books = image.read(self.read_books, image.worker_dir)
            states = {row.command_id: row.state for row in books.attempts}
            for command_id, count in unknown.items():
                if counts[command_id] != count:
                    yield f"{when}: command {command_id!r} is unknown and had an effect since"
                if states.get(command_id) != "UNKNOWN":
                    yield f"{when}: command {command_id!r} was unknown and is no longer"
            for command_id, state in states.items():
                if state == "UNKNOWN":
                    unknown.setdefault(command_id, counts[command_id])
