"""Admission: whether a new command may come in (ADM-01, DRN-04)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from worker_under_test.domain.order import Directives, is_control

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker_under_test.domain.command import Command
    from worker_under_test.domain.order import Order
    from worker_under_test.domain.registration import NodeInventory
    from worker_under_test.ports.observation import Observation


class Admission:
    """What decides about new commands, and who was turned away.

    Draining, the limit and what is withdrawn are kept in memory for the check and saved with
    the order that set them; a start restores them (DRN-01). Recovery neither sets nor clears
    them (DRN-03).

    Args:
        inventory: Reads what the node has room for; asked at each check.
        observation: Told when it cannot be read.

    Attributes:
        lock: Held from the check until the command is saved (ADM-01).
        room: Set when commands that were turned away may fit in now.
        changes: Counts what may have made room; a refusal is right only if it stood still.
    """

    def __init__(self, inventory: Callable[[], NodeInventory], observation: Observation) -> None:
        self.lock = asyncio.Lock()
        self.room = asyncio.Event()
        self.changes = 0
        self._inventory = inventory
        self._observation = observation
        self._directives = Directives()
        self._turned_away: set[str] = set()

    def restore(self, directives: Directives) -> None:
        """Take what is saved, at a start.

        Args:
            directives: What the saved orders add up to.
        """
        self._directives = directives

    def obey(self, order: Order) -> None:
        """Change what is in force; the order is saved.

        Args:
            order: The order.
        """
        self._directives = self._directives.after(order)

    def refusal(self, command: Command, open_attempts: int) -> str | None:
        """Say why a new command may not come in.

        Args:
            command: A command that is not in the inbox.
            open_attempts: How many attempts are open, by the store (ADM-02, REC-18).

        Returns:
            The reason, or None if it may.
        """
        if is_control(command):
            return None
        if self._directives.draining:
            return "draining"
        if (command.capability, command.version) in self._directives.withdrawn:
            return f"capability {command.capability!r} version {command.version} is withdrawn"
        capacity = self._capacity()
        if open_attempts >= capacity:
            return f"full: {open_attempts} of {capacity} attempts are open"
        return None

    def turn_away(self, command_id: str) -> None:
        """Remember a command that was refused and may come in later.

        Args:
            command_id: The command.
        """
        self._turned_away.add(command_id)

    def look_again(self) -> bool:
        """Note that there may be room now: an attempt ended, or an order was obeyed.

        Returns:
            Whether commands that were turned away are to be asked for, and nobody was told yet.
        """
        self.changes += 1
        if not self._turned_away or self.room.is_set():
            return False
        self.room.set()
        return True

    def take_turned_away(self) -> frozenset[str]:
        """Return those who were turned away, and forget them: they are asked for now."""
        self.room.clear()
        turned_away, self._turned_away = frozenset(self._turned_away), set()
        return turned_away

    def _capacity(self) -> int:
        """Return how many attempts may be open; what cannot be read counts as none (DRN-10)."""
        try:
            inventory = self._inventory()
        except Exception as error:  # noqa: BLE001 - a hook of the node; whatever it is, it is full
            self._observation.event("inventory cannot be read", error)
            return 0
        room = inventory.attempts if inventory.cpu_capacity_millis > 0 else 0
        limit = self._directives.limit
        return room if limit is None else min(room, limit)
