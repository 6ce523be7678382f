"""Gather what an experiment leaves to judge by: the second restart, and what is known already."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.experiment.state_cache import PrefixSnapshot, Recovery, RestartResult, can_go_on_from
from harness.images.digest import image_digest
from harness.model.errors import HarnessError
from harness.model.oracle import Evidence

if TYPE_CHECKING:
    from harness.experiment.rig import Rig
    from harness.experiment.state_cache import PrefixKey, StateCache, StateKey
    from harness.model.image import Image
    from harness.model.oracle import EndedIncarnation


class RestartError(HarnessError):
    """A worker that had become quiet did not become quiet again after a restart."""


class Gathering:
    """The end of one experiment.

    Args:
        rig: The experiment.
        known: What is known of equal states, to be used and added to, or None.

    Attributes:
        used: Whether anything was used that another experiment had found.
    """

    def __init__(self, rig: Rig, known: StateCache | None = None) -> None:
        self._rig = rig
        self._known = known
        self.used = bool(rig.incarnations)
        self._crashed: StateKey | None = None
        self._recovery: tuple[StateKey, Recovery] | None = None
        self._again: tuple[StateKey, RestartResult] | None = None

    def keep_beginning(self, start: PrefixKey) -> None:
        """Remember what has happened so far, if an experiment can go on from a copy of it.

        Args:
            start: What has happened so far.
        """
        rig = self._rig
        if self._known is not None and rig.at_rest and can_go_on_from(rig.workspace.worker_dir):
            rig.save()
            self._known.beginnings.keep(
                start,
                lambda home: PrefixSnapshot.of(rig.incarnations, rig.workspace.worker_dir, home),
            )

    def known_outcome(self) -> Evidence | None:
        """Return what a recovery from here leaves, if that from an equal state is known."""
        rig = self._rig
        if self._known is None or not rig.incarnations or not rig.at_rest:
            return None
        rig.save()
        self._crashed = self._standing(rig.last_image)
        recovery = self._known.recoveries.find(self._crashed)
        if recovery is None:
            return None
        restarted = self._known.restarts.find(recovery.settled)
        if restarted is None:
            return None
        self.used = True
        recovered = replace(recovery.life, before=rig.last_image)
        return self._evidence((*rig.incarnations, recovered), recovery.survivors, restarted)

    def evidence(self) -> Evidence:
        """Restart the quiet worker once more, offer the fresh command, end it, and gather.

        The last incarnation so far must have become quiet without a fault.

        Raises:
            HarnessError: An incarnation is still alive, or none has run.
            RestartError: The restarted worker did not become quiet.
        """
        rig = self._rig
        if rig.alive or not rig.incarnations:
            raise HarnessError("gather evidence when the last incarnation has become quiet")
        incarnations, survivors = rig.incarnations, rig.survivors()
        known = self._known if rig.at_rest else None
        if known is None:
            return self._evidence(incarnations, survivors, self._run_again())
        settled = self._standing(rig.durable)
        restarted = known.restarts.find(settled)
        if restarted is None:
            restarted = self._run_again()
            self._again = settled, restarted
        else:
            self.used = True
            rig.save_for_good()
        if self._crashed is not None:
            self._recovery = self._crashed, Recovery(incarnations[-1], survivors, settled)
        return self._evidence(incarnations, survivors, restarted)

    def remember(self) -> None:
        """Add what an experiment found that held to what is known.

        The evidence must not be used any more: its images are moved.
        """
        if self._known is None:
            return
        if self._recovery is not None:
            crashed, recovery = self._recovery
            self._known.recoveries.keep(crashed, recovery.copied_to)
        if self._again is not None:
            settled, restarted = self._again
            self._known.restarts.keep(settled, restarted.moved_to)

    def _standing(self, durable: Image) -> StateKey:
        rig = self._rig
        return rig.scenario.name, rig.seed, rig.next_number, image_digest(durable)

    def _evidence(
        self,
        incarnations: tuple[EndedIncarnation, ...],
        survivors: tuple[str, ...],
        restarted: RestartResult,
    ) -> Evidence:
        *struck, recovered = incarnations
        return Evidence(
            workload=self._rig.workload,
            struck=tuple(struck),
            recovered=recovered,
            restarted=restarted.life_after(recovered),
            after_restart=restarted.after_restart,
            survivors=tuple(dict.fromkeys((*survivors, *restarted.survivors))),
        )

    def _run_again(self) -> RestartResult:
        rig = self._rig
        number = rig.start()
        self._must_be_quiet(number, "started again")
        ended = number not in rig.alive
        rig.save()
        after_restart = rig.last_image if ended else rig.image(f"{number}-unchanged")
        fresh = rig.workload.fresh
        rig.offer(fresh)
        if ended:
            # Only a start shows a fresh command to a worker that ends by itself.
            number = rig.start()
        self._must_be_quiet(number, f"offered command {fresh.command_id!r}")
        if not ended:
            rig.kill(number)
        rig.save()
        return RestartResult(rig.incarnations[-1], after_restart, rig.survivors())

    def _must_be_quiet(self, number: int, when: str) -> None:
        halt = self._rig.run_until_quiet(number)
        if not halt.quiet:
            raise RestartError(f"{when}, the worker {halt.death}\n{self._rig.output(number)}")
