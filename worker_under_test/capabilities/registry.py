"""Finds the capability that a command names (CAP-02)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_under_test.domain.errors import DomainError, Kind

if TYPE_CHECKING:
    from worker_under_test.domain.command import Command
    from worker_under_test.domain.event import AttemptEvent
    from worker_under_test.domain.recovery import RecoveryPolicy
    from worker_under_test.ports.capability import Capability, ProgressReporter


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

    async def execute(self, command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
        """Execute a command by the capability of its name and version."""
        capability = self._installed.get((command.capability, command.version))
        if capability is None:
            raise DomainError(
                Kind.NOT_FOUND,
                f"capability {command.capability!r} version {command.version} is not installed",
            )
        return await capability.execute(command, reporter)
