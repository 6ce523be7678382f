"""The sharing of equal states: a wrapper around the steps of an experiment.

What a worker does from some durable state on is decided by that state, the seed and the number of
the incarnation. So experiments share three things (`harness.experiment.state_cache`): the prefix of
schedules that strike their first incarnations alike, the recovery from equal crash images, and the
restart of workers that settled in equal states. Nothing here can make a verdict: only what held is
remembered, and what does not hold is run from the start without it (`harness.experiment.lane`).
"""

from __future__ import annotations

from dataclasses import replace
from enum import Flag, auto
from typing import TYPE_CHECKING

from harness.experiment.protocol import RealSteps
from harness.experiment.state_cache import (
    KnownRecovery,
    PrefixSnapshot,
    moved_to,
    restart_after,
)

if TYPE_CHECKING:
    from harness.experiment.ends import Recovery, RestartResult
    from harness.experiment.rig import Rig
    from harness.experiment.state_cache import PrefixKey, StateCache, StateKey
    from harness.model.image import Image
    from harness.model.schedule import Schedule


class Sharing(Flag):
    """What experiments may share."""

    NOTHING = 0
    PREFIXES = auto()
    RECOVERIES = auto()
    RESTARTS = auto()
    ALL = PREFIXES | RECOVERIES | RESTARTS


class SharedSteps:
    """The steps of one experiment, each skipped where its result is known.

    Args:
        rig: The experiment.
        cache: What is known of equal states, to be used and added to.
        sharing: What of it may be used.

    Attributes:
        used: Whether anything was used that another experiment had found.
    """

    def __init__(self, rig: Rig, cache: StateCache, sharing: Sharing = Sharing.ALL) -> None:
        self._rig = rig
        self._cache = cache
        self._sharing = sharing
        self._real = RealSteps(rig)
        self.used = bool(rig.incarnations)
        self._crashed: StateKey | None = None
        self._settled: StateKey | None = None
        self._recovery: Recovery | None = None
        self._restart: RestartResult | None = None
        self._skipped: RestartResult | None = None

    def begin(self, prefix: Schedule) -> None:
        """Remember what has happened so far, if an experiment can go on from a copy of it."""
        rig = self._rig
        if Sharing.PREFIXES in self._sharing and rig.at_rest:
            rig.save()
            self._cache.prefixes.keep(
                prefix_key(rig.scenario.name, rig.seed, prefix),
                lambda home: PrefixSnapshot.of(
                    rig.incarnations, rig.workspace, home, world_from_image=rig.has_services
                ),
            )

    def recover(self) -> Recovery:
        """Recover, or give what a recovery from an equal crash image came to.

        It is given only if the restart after it is known too: the workspace stays where it is.
        """
        rig = self._rig
        if Sharing.RECOVERIES in self._sharing and rig.incarnations and rig.at_rest:
            rig.save()
            self._crashed = self._state(rig.last_image)
            known = self._cache.recoveries.find(self._crashed)
            restart = self._cache.restarts.find(known.settled) if known is not None else None
            if known is not None and restart is not None:
                self.used = True
                ended = replace(known.recovery.incarnation, before=rig.last_image)
                self._skipped = restart_after(restart, ended)
                return replace(known.recovery, incarnation=ended)
        recovery = self._real.recover()
        if self._crashed is not None and rig.at_rest:
            self._recovery = recovery
        return recovery

    def restart(self) -> RestartResult:
        """Restart, or give what a restart from an equal state came to."""
        rig = self._rig
        if self._skipped is not None:
            return self._skipped
        if Sharing.RESTARTS not in self._sharing or not rig.at_rest:
            self._recovery = None
            return self._real.restart()
        recovered = rig.incarnations[-1]
        self._settled = self._state(rig.durable)
        known = self._cache.restarts.find(self._settled)
        if known is not None:
            self.used = True
            rig.save_for_good()
            return restart_after(known, recovered)
        self._restart = self._real.restart()
        return self._restart

    def held(self) -> None:
        """Add what the experiment found to what is known; its images are moved."""
        if self._recovery is not None and self._crashed is not None and self._settled is not None:
            known = KnownRecovery(self._recovery, self._settled)
            self._cache.recoveries.keep(self._crashed, known.copied_to)
        if self._restart is not None and self._settled is not None:
            restart = self._restart
            self._cache.restarts.keep(self._settled, lambda home: moved_to(restart, home))

    def _state(self, durable: Image) -> StateKey:
        rig = self._rig
        return rig.scenario.name, rig.seed, rig.next_number, rig.state_digest(durable)


def prefix_key(scenario: str, seed: int, prefix: Schedule) -> PrefixKey:
    """Return what finds the prefix of an experiment again."""
    return scenario, seed, str(prefix)


def longest_prefix(
    cache: StateCache, scenario: str, seed: int, schedule: Schedule
) -> PrefixSnapshot | None:
    """Find the longest prefix of a schedule that is known; its last incarnation is its own."""
    for length in range(len(schedule.incarnations) - 1, 0, -1):
        if found := cache.prefixes.find(prefix_key(scenario, seed, schedule.first(length))):
            return found
    return None
