"""The ports of one worker, together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from worker_under_test.ports.capability import CapabilityExecutor
    from worker_under_test.ports.clock import Clock
    from worker_under_test.ports.command_stream import CommandStream
    from worker_under_test.ports.control_plane import ControlPlane
    from worker_under_test.ports.effects import Effects
    from worker_under_test.ports.file_space import FileSpace
    from worker_under_test.ports.id_generator import IDGenerator
    from worker_under_test.ports.local_store import LocalStore
    from worker_under_test.ports.observation import Observation
    from worker_under_test.ports.processes import Processes
    from worker_under_test.ports.remote import Remote
    from worker_under_test.ports.step_store import StepStore
    from worker_under_test.ports.tree_space import TreeSpace


@dataclass(frozen=True, slots=True)
class Ports:
    """What the application is given (SES-03).

    Attributes:
        control: Requests to the coordinator.
        commands: Where commands come from.
        store: The local database.
        capabilities: What does the work.
        ids: Makes identities.
        observation: What an operator sees.
        clock: Where the worker waits.
    """

    control: ControlPlane
    commands: CommandStream
    store: LocalStore
    capabilities: CapabilityExecutor
    ids: IDGenerator
    observation: Observation
    clock: Clock


@dataclass(frozen=True, slots=True)
class Tools:
    """What capabilities work with.

    Attributes:
        files: Where artifacts are made and published.
        trees: Where whole trees of files are.
        processes: Starts children, and finds them again.
        remote: The services outside.
        steps: Where runs of steps keep how far they are.
        effects: What steps do outside.
        clock: Where a capability waits.
    """

    files: FileSpace
    trees: TreeSpace
    processes: Processes
    remote: Remote
    steps: StepStore
    effects: Effects
    clock: Clock
