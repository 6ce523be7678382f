"""The worker's settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """What a worker is started with.

    Attributes:
        root: Existing directory of everything durable: ``worker.db`` and ``files/``.
        coordinator: ``unix:PATH`` of the coordinator's socket, or ``http://HOST:PORT``.
        instance_id: Identity to take at the first start; later the saved one counts (IDN-06).
        name: Name for the reader.
        node_id: The node the worker runs on.
        cpu_capacity_millis: CPU capacity in thousandths of a core, at least 1.
        capacity: How many attempts may be open at once.
        init: A first start: the database may be made if there is none (IDN-02). It never replaces
            one that is there.
        retry_initial_s: The first wait after a failed delivery, in seconds.
        id_seed: Makes identities repeatable; None makes them random.
    """

    root: Path
    coordinator: str
    instance_id: str
    name: str = "worker"
    node_id: str = "node-1"
    cpu_capacity_millis: int = 1000
    capacity: int = 4
    init: bool = False
    retry_initial_s: float = 1.0
    id_seed: str | None = None
