"""Known bad: a lock file says that a worker runs, and only its own end removes it.

A worker that is killed leaves the file, and no later one starts: nothing is lost, and nothing is
done any more. Caught by ``starts-again``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from harness.model.workload import Command, Workload
from harness.oracles.effects import EveryCommandHasEffect, NoEffectTwice
from harness.points import crash_point
from harness.scenario import Scenario, broken_by
from harness.world.ledger import EffectLedger

if TYPE_CHECKING:
    from harness.model.site import Site


def send_parcels(site: Site) -> None:
    """Send every parcel that has not been sent, if no other worker runs."""
    lock = site.worker_dir / "lock"
    ledger = EffectLedger(site.world_dir)
    crash_point("lock.take.before")
    try:
        lock.touch(exist_ok=False)
    except FileExistsError:
        sys.exit("another worker is running")
    crash_point("lock.take.after")
    sent = {effect.key for effect in ledger.effects()}
    for parcel in site.offered:
        if parcel.command_id not in sent:
            ledger.record("parcel", parcel.command_id)
            crash_point("parcel.send.after", parcel=parcel.command_id)
    lock.unlink()
    crash_point("lock.remove.after")


def two_parcels(_seed: int) -> Workload:
    """Ask for two parcels."""
    return Workload((Command("p1"), Command("p2")), fresh=Command("fresh"))


LOCK_LEFT_BEHIND = Scenario(
    "lock-left-behind",
    send_parcels,
    two_parcels,
    (NoEffectTwice(), EveryCommandHasEffect("parcel")),
    pin=broken_by("starts-again"),
    points=(__name__,),
)
