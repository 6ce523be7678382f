"""Known bad: what a killed worker had taken is given back too late for the start that finds it.

The recovery makes its list of open letters first and gives back second, so it becomes quiet with a
letter left lying, which only another start would post. Caught by ``every-command-has-effect``,
which looks when the recovered worker is quiet: in real life nobody starts it once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.model.workload import Command, Workload
from harness.oracles.effects import EveryCommandHasEffect, NoEffectTwice
from harness.points import crash_point
from harness.scenario import Scenario, broken_by
from harness.world.ledger import EffectLedger

if TYPE_CHECKING:
    from harness.model.site import Site


def post_letters(site: Site) -> None:
    """Post every letter that is open and not taken."""
    taken = site.worker_dir / "taken"
    ledger = EffectLedger(site.world_dir)
    posted = {effect.key for effect in ledger.effects()}
    in_hand = taken.read_text(encoding="utf-8") if taken.exists() else ""
    open_ones = [
        letter.command_id
        for letter in site.offered
        if letter.command_id not in posted and letter.command_id != in_hand
    ]
    taken.unlink(missing_ok=True)
    for letter in open_ones:
        taken.write_text(letter, encoding="utf-8")
        crash_point("letter.take.after", letter=letter)
        ledger.record("letter", letter)
        crash_point("letter.post.after", letter=letter)
        taken.unlink()


def two_letters(_seed: int) -> Workload:
    """Ask for two letters."""
    return Workload((Command("l1"), Command("l2")), fresh=Command("fresh"))


LEFT_FOR_NEXT_START = Scenario(
    "left-for-next-start",
    post_letters,
    two_letters,
    (NoEffectTwice(), EveryCommandHasEffect("letter")),
    pin=broken_by("every-command-has-effect"),
    points=(__name__,),
)
