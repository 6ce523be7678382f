"""Known bad: a transfer goes on at the offset that its checkpoint names, unseen.

A bit of what is on disk flips while the worker is down, and the file is published with it. Caught
by ``artifacts-whole`` (REC-05..REC-07, INV-11).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.capabilities import BIG_FILE, FILES, flip_a_bit, offers, transfer
from scenarios.capability_rules import capability_scenario
from worker_under_test.capabilities.registry import installed
from worker_under_test.capabilities.transfer import Transfer, Transferred
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from hashlib import _Hash

    from worker_under_test.domain.artifact import ArtifactSet
    from worker_under_test.ports.bundle import Tools
    from worker_under_test.ports.capability import CapabilityExecutor


class TrustsOffset(Transfer):
    """Compares nothing."""

    async def _verified(
        self, files: ArtifactSet, name: str, got: Transferred
    ) -> tuple[Transferred, _Hash]:
        return got, hashlib.sha256(await self._files.read_temp(files, name, 0, got.offset))


def trusting(tools: Tools) -> CapabilityExecutor:
    """Install the capabilities."""
    return installed(tools, TrustsOffset(tools.files, tools.remote, tools.clock))


OFFSET_TRUSTED = capability_scenario(
    "offset-trusted",
    offers(transfer("t1")),
    (FILES,),
    {"t1": BIG_FILE},
    parts=Parts(capabilities=trusting),
    pin=broken_by("artifacts-whole"),
    between=flip_a_bit,
    strike=("transfer.request.before", "transfer.offset.before", "checkpoint.save.after"),
)
