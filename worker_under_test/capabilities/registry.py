"""Finds the capability that a command names (CAP-02)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_under_test.capabilities.command import RunCommand
from worker_under_test.capabilities.compute import Compute
from worker_under_test.capabilities.export import Export
from worker_under_test.capabilities.notify import Notify
from worker_under_test.capabilities.render import Render
from worker_under_test.capabilities.transfer import Transfer
from worker_under_test.capabilities.unpack import Unpack
from worker_under_test.capabilities.workflow import Workflow
from worker_under_test.domain.errors import DomainError, Kind

if TYPE_CHECKING:
    from worker_under_test.domain.command import Command
    from worker_under_test.domain.event import AttemptEvent
    from worker_under_test.domain.progress import Checkpoint
    from worker_under_test.domain.recovery import Proposal, RecoveryPolicy
    from worker_under_test.ports.bundle import Tools
    from worker_under_test.ports.capability import (
        Capability,
        CapabilityExecutor,
        ProgressReporter,
    )


class CapabilityRegistry:
    """A `CapabilityExecutor` over installed capabilities.

    Args:
        *capabilities: What is installed; the last of equal name and version counts.
    """

    def __init__(self, *capabilities: Capability) -> None:
        self._installed = {(each.name, each.version): each for each in capabilities}

    def policy_of(self, command: Command) -> RecoveryPolicy | None:
        """Tell how a command's interrupted attempt is continued (REC-02)."""
        capability = self._installed.get((command.capability, command.version))
        return None if capability is None else capability.policy

    def recover(self, command: Command, checkpoint: Checkpoint | None) -> Proposal:
        """Ask the capability what is done with an attempt that had begun (REC-02)."""
        return self._of(command).recover(command, checkpoint)

    async def execute(self, command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
        """Execute a command by the capability of its name and version."""
        return await self._of(command).execute(command, reporter)

    def _of(self, command: Command) -> Capability:
        capability = self._installed.get((command.capability, command.version))
        if capability is None:
            raise DomainError(
                Kind.NOT_FOUND,
                f"capability {command.capability!r} version {command.version} is not installed",
            )
        return capability


def installed(tools: Tools, *others: Capability) -> CapabilityExecutor:
    """Install every capability; a new one is one file, and one line here (CAP-01).

    Args:
        tools: What they work with.
        *others: Take the place of those of their name and version.
    """
    return CapabilityRegistry(
        Compute(tools.remote, tools.clock),
        Export(tools.files),
        Transfer(tools.files, tools.remote, tools.clock),
        Render(tools.remote, tools.clock),
        Notify(tools.remote, tools.clock),
        Unpack(tools.trees, tools.remote, tools.clock),
        RunCommand(tools.processes),
        Workflow(tools.steps, tools.effects),
        *others,
    )
