"""Known bad (M-16): a restart runs every attempt again that it finds begun.

Whatever the capability is, and whatever it left outside. Caught by ``recovery-decision-right``: a
notification that may have been sent is sent again (REC-01).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.capabilities import NO_KEYS, notify, offers
from scenarios.capability_rules import capability_scenario
from worker_under_test.application.recovery import Recovery
from worker_under_test.application.runtime import Roles
from worker_under_test.domain.recovery import Decision, Proposal
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from worker_under_test.domain.attempt import UnfinishedAttempt


class RunAgain(Recovery):
    """Asks no capability."""

    def _choose(self, found: UnfinishedAttempt) -> Proposal:  # noqa: ARG002
        return Proposal(Decision.START, "it was not finished")


RESTART_RUNS_AGAIN = capability_scenario(
    "restart-runs-again",
    offers(notify("n1")),
    (NO_KEYS,),
    parts=Parts(roles=Roles(recovery=RunAgain)),
    pin=broken_by("recovery-decision-right"),
    strike=("notify.send.before", "notify.send.after", "capability.run.after"),
)
