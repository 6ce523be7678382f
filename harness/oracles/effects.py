"""Effects: judged by the ledger alone, so they fit any worker."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.model.oracle import Finding, broken_if
from harness.world.ledger import Effect, EffectLedger

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.image import Image
    from harness.model.oracle import Evidence


def read_ledger(world_dir: Path) -> tuple[Effect, ...]:
    """Return the effects that a world's ledger holds."""
    return EffectLedger(world_dir).effects()


@dataclass(frozen=True, slots=True)
class NoEffectTwice:
    """No side effect happens twice (INV-3).

    Attributes:
        kinds: Kinds of effect to judge; empty for all.
    """

    kinds: frozenset[str] = frozenset()
    name: str = "no-effect-twice"
    promise: str = "no side effect happens twice under one key"
    remedy: str = (
        "Save the key of an effect before it happens, and after a restart do it again only "
        "under that key or when it is proved not to have happened."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Count the effects of each kind and key at the very end."""
        counts = Counter(
            (effect.kind, effect.key)
            for effect in evidence.final.read(read_ledger, evidence.final.world_dir)
            if not self.kinds or effect.kind in self.kinds
        )
        return broken_if(
            f"{kind} {key!r} happened {count} times"
            for (kind, key), count in sorted(counts.items())
            if count > 1
        )


@dataclass(frozen=True, slots=True)
class EveryCommandHasEffect:
    """Every command has its effect: for workers whose effect key is the command id.

    Attributes:
        kind: Kind of the effect.
    """

    kind: str
    name: str = "every-command-has-effect"
    promise: str = "every accepted command has its side effect in the end"
    remedy: str = (
        "Mark a command as done only after its effect, and take up at every start what is "
        "accepted and not marked."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Look for the effect of every command when the recovered worker is quiet, and at the end.

        One that comes only after another restart is late: in real life there may be none. The fresh
        command is offered last, so it is looked for at the end alone.
        """
        settled, final = (self._done(image) for image in (evidence.settled, evidence.final))
        commands = [command.command_id for command in evidence.workload.commands]
        asked = [command.command_id for command in evidence.asked]
        never = [key for key in asked if key not in final]
        late = [key for key in commands if key in final and key not in settled]
        return broken_if(
            [
                *(f"command {key!r} never had its effect {self.kind!r}" for key in never),
                *(
                    f"command {key!r} had its effect {self.kind!r} only after one more restart"
                    for key in late
                ),
            ]
        )

    def _done(self, image: Image) -> set[str]:
        effects = image.read(read_ledger, image.world_dir)
        return {effect.key for effect in effects if effect.kind == self.kind}
