"""The recovery scan: what a restart found, and what is to be done about it (REC-01, REC-17)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.domain.recovery import RecoveryDecision, decide

if TYPE_CHECKING:
    from worker_under_test.domain.attempt import Attempt, UnfinishedAttempt
    from worker_under_test.domain.recovery import Decision, Proposal
    from worker_under_test.ports.bundle import Ports


@dataclass(frozen=True, slots=True)
class Recovered:
    """An attempt about which a decision is saved.

    Attributes:
        attempt: The attempt.
        decision: What is to be done.
        reason: Why.
    """

    attempt: Attempt
    decision: Decision
    reason: str


class Recovery:
    """Decides about unfinished attempts before any command is consumed (ATT-11).

    Args:
        ports: The store, and the capabilities with their policies.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def scan(self, boot: int) -> list[Recovered]:
        """Decide about each unfinished attempt, in the order of acceptance, and save it.

        Nothing is done here: a crash in the scan leaves decisions that the next scan makes again.

        Args:
            boot: Number of this start.

        Returns:
            What is to be done.
        """
        crash_point("recovery.scan.before")
        recovered = [
            await self._decide(found, boot) for found in await self._ports.store.unfinished()
        ]
        crash_point("recovery.scan.after")
        return recovered

    def _choose(self, found: UnfinishedAttempt) -> Proposal:
        command, capabilities = found.attempt.command, self._ports.capabilities
        return decide(
            found.state,
            capabilities.policy_of(command),
            lambda: capabilities.recover(command, found.checkpoint),
            cancelled=found.cancelled,
        )

    async def _decide(self, found: UnfinishedAttempt, boot: int) -> Recovered:
        attempt = found.attempt
        command_id = attempt.command.command_id
        chosen = self._choose(found)
        crash_point("recovery.decide.before", command=command_id)
        await self._ports.store.decide(
            RecoveryDecision(
                boot=boot,
                attempt_id=attempt.attempt_id,
                command_id=command_id,
                found_state=found.state,
                found_checkpoint_seq=found.checkpoint.seq if found.checkpoint else None,
                decision=chosen.decision,
                reason=chosen.reason,
            )
        )
        crash_point("recovery.decide.after", command=command_id)
        return Recovered(attempt, chosen.decision, chosen.reason)
