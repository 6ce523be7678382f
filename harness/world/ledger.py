"""The effect ledger: an append-only witness of side effects that outlives every strike.

One line of JSON per effect in one file of the world. A line is written with one ``write`` on a
descriptor opened with ``O_APPEND``, so a killed writer leaves a whole line or none, and several
processes may write at once (write(2), open(2)).
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME = "effects.ndjson"


@dataclass(frozen=True, slots=True)
class Effect:
    """One side effect, as the world saw it.

    Attributes:
        kind: What was done, for example ``"charge"``.
        key: Which one it was: two effects of one kind and key are the same effect done twice.
        token: Who did it, for example an attempt id; never part of the identity.
    """

    kind: str
    key: str
    token: str = ""


class EffectLedger:
    """The ledger of one workspace.

    Args:
        world_dir: The workspace's ``world/`` directory.
    """

    def __init__(self, world_dir: Path) -> None:
        self.path = world_dir / FILE_NAME

    def record(self, kind: str, key: str, token: str = "") -> None:
        """Append one effect; it has happened when this returns.

        Args:
            kind: What was done.
            key: Which one it was.
            token: Who did it.
        """
        line = json.dumps(asdict(Effect(kind, key, token))).encode() + b"\n"
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.write(fd, line)
        finally:
            os.close(fd)

    def effects(self) -> tuple[Effect, ...]:
        """Return every effect so far, in the order of recording."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ()
        return tuple(Effect(**json.loads(line)) for line in text.splitlines())
