"""Orders to the worker: saved with their answer, then applied, then confirmed (DRN-02, AMB-14)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.domain.order import Cancel
from worker_under_test.ports.local_store import Acceptance

if TYPE_CHECKING:
    from worker_under_test.application.admission import Admission
    from worker_under_test.application.confirmation import Confirmation
    from worker_under_test.application.quiet import Quiet
    from worker_under_test.application.running import Running
    from worker_under_test.domain.command import Command
    from worker_under_test.domain.order import Order
    from worker_under_test.ports.bundle import Ports


class Orders:
    """Obeys orders.

    Args:
        ports: The store where orders are saved.
        confirmation: How the coordinator hears of it.
        admission: What a drain, a limit or an offer changes.
        running: Where a cancel finds what it stops.
        quiet: Told that an answer was saved, and of what is to be asked for again.
    """

    def __init__(
        self,
        ports: Ports,
        confirmation: Confirmation,
        admission: Admission,
        running: Running,
        quiet: Quiet,
    ) -> None:
        self._ports = ports
        self._confirmation = confirmation
        self._admission = admission
        self._running = running
        self._quiet = quiet

    async def obey(self, command: Command, order: Order) -> None:
        """Save an order, put it in force, and confirm it; a repeat is only confirmed (INB-06).

        Args:
            command: The command that carries it.
            order: The order.

        Raises:
            Exception: The store failed; the order is neither in force nor confirmed.
        """
        crash_point("order.save.before", order=command.capability)
        ids = self._ports.ids
        # Not between the check of a command and its saving: what is admitted, is before the order.
        async with self._admission.lock:
            saved = await self._ports.store.accept_order(
                command, order, ids.new("attempt"), ids.new("event")
            )
            if saved.outcome is Acceptance.ACCEPTED:
                crash_point("order.apply.before", order=command.capability)
                self._apply(order)
        if saved.outcome is Acceptance.CONFLICTING:
            await self._confirmation.refuse(command, "known with other content")
            return
        if saved.outcome is Acceptance.ACCEPTED:
            crash_point("order.apply.after", order=command.capability)
            self._quiet.event_saved()
        await self._confirmation.acknowledge(command)
        if self._admission.look_again():
            self._quiet.take()

    def _apply(self, order: Order) -> None:
        if isinstance(order, Cancel):
            self._running.cancel(order.target)
        else:
            self._admission.obey(order)
