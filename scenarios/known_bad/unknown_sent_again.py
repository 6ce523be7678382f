"""Known bad: what may have been sent is sent again, to a receiver that does not honour keys.

Caught by ``one-effect-per-command``: the notification goes out twice (REC-12, UNK-05).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.capabilities import NO_KEYS, notify, offers
from scenarios.capability_rules import capability_scenario
from worker_under_test.capabilities.notify import Notify
from worker_under_test.capabilities.registry import installed
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from worker_under_test.ports.bundle import Tools
    from worker_under_test.ports.capability import CapabilityExecutor


class SendsAgain(Notify):
    """Repeats whatever the receiver honours."""

    def _may_repeat(self, *, honoured: bool) -> bool:  # noqa: ARG002
        return True


def persistent(tools: Tools) -> CapabilityExecutor:
    """Install the capabilities."""
    return installed(tools, SendsAgain(tools.remote, tools.clock))


UNKNOWN_SENT_AGAIN = capability_scenario(
    "unknown-sent-again",
    offers(notify("n1")),
    (NO_KEYS,),
    parts=Parts(capabilities=persistent),
    pin=broken_by("one-effect-per-command"),
    strike=("notify.send.before", "notify.send.after"),
)
