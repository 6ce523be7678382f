"""Known bad: work is done again with whatever its input is by then.

The source changes while the worker is down. Caught by ``input-kept``: the result is made of
another input than the one that was recorded (REC-03).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.capabilities import CHANGING_SEED, compute_source, offers
from scenarios.capability_rules import capability_scenario
from worker_under_test.capabilities.compute import Compute
from worker_under_test.capabilities.registry import installed
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from worker_under_test.domain.progress import Checkpoint
    from worker_under_test.ports.bundle import Tools
    from worker_under_test.ports.capability import CapabilityExecutor


class AnyInput(Compute):
    """Compares no versions."""

    def _must_be_the_same(self, version: str, checkpoint: Checkpoint | None) -> None:
        """Do nothing."""


def any_input(tools: Tools) -> CapabilityExecutor:
    """Install the capabilities."""
    return installed(tools, AnyInput(tools.remote, tools.clock))


CHANGED_INPUT_RECOMPUTED = capability_scenario(
    "changed-input-recomputed",
    offers(compute_source("c1")),
    (CHANGING_SEED,),
    parts=Parts(capabilities=any_input),
    pin=broken_by("input-kept"),
    strike=("compute.half.after", "capability.run.after"),
)
