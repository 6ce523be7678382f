"""How an experiment ends: the recovery after the last strike, and the restart after that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.model.image import Image
    from harness.model.oracle import EndedIncarnation


@dataclass(frozen=True, slots=True)
class Recovery:
    """What came of the recovery.

    Attributes:
        incarnation: The incarnation that became quiet without a fault.
        survivors: Processes that were left when it was dead.
    """

    incarnation: EndedIncarnation
    survivors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RestartResult:
    """What came of the restart.

    Attributes:
        incarnations: The one that was restarted, and for a worker that ends by itself the one that
            was started to see the fresh command.
        after_restart: What was durable when the worker was quiet, before the fresh command.
        survivors: Processes that were left when all were dead.
    """

    incarnations: tuple[EndedIncarnation, ...]
    after_restart: Image
    survivors: tuple[str, ...]
