"""The second restart, and what is known of it.

After a recovery the quiet worker is started once more, must change nothing, and is offered a fresh
command. What comes of that is decided by what was durable before: experiments that settle in equal
states, as most do, share it, and it is run once for each state.
"""

from __future__ import annotations

import shutil
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from harness.workspace import Image

if TYPE_CHECKING:
    from pathlib import Path

    from harness.oracles.oracle import Life

State: TypeAlias = tuple[str, int, int, str]
"""Scenario, seed, number of the incarnation that is to be started, digest of what is durable."""

_KEPT = 64


@dataclass(frozen=True, slots=True)
class Again:
    """What came of the second restart.

    Attributes:
        life: The last incarnation.
        unchanged: What was durable when the worker was quiet, before the fresh command.
        survivors: Processes that were left when it was dead.
    """

    life: Life
    unchanged: Image
    survivors: tuple[str, ...]


class KnownRestarts:
    """Second restarts by the state that they started from; the least used are forgotten.

    Args:
        directory: Where their images are kept; it is made.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._directory.mkdir()
        self._known: OrderedDict[State, tuple[Again, Path]] = OrderedDict()
        self._count = 0

    def find(self, state: State) -> Again | None:
        """Return what is known of a state."""
        if state not in self._known:
            return None
        self._known.move_to_end(state)
        return self._known[state][0]

    def keep(self, state: State, again: Again) -> Again:
        """Remember a second restart, with its images moved to a place of their own.

        Returns:
            The same with the images where they are now.
        """
        if state in self._known:
            shutil.rmtree(self._known.pop(state)[1])
        self._count += 1
        home = self._directory / str(self._count)
        home.mkdir()
        moved: dict[Path, Image] = {}
        for image in (again.unchanged, again.life.after):
            if image.path not in moved:
                target = home / image.path.name
                image.path.rename(target)
                moved[image.path] = Image(target)
        kept = replace(
            again,
            life=replace(
                again.life,
                before=moved.get(again.life.before.path, again.life.before),
                after=moved[again.life.after.path],
            ),
            unchanged=moved[again.unchanged.path],
        )
        self._known[state] = (kept, home)
        if len(self._known) > _KEPT:
            _, (_, oldest) = self._known.popitem(last=False)
            shutil.rmtree(oldest)
        return kept
