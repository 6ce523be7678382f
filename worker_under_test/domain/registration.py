"""Who the worker is: the record that it registers with, and its checks (REG-01..REG-05)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker_under_test.domain.errors import DomainError, Kind

if TYPE_CHECKING:
    from worker_under_test.domain.json_value import JsonValue


@dataclass(frozen=True, slots=True)
class NodeInventory:
    """What the node has.

    Attributes:
        cpu_capacity_millis: CPU capacity in thousandths of a core.
        attempts: How many attempts it has room for at once.
    """

    cpu_capacity_millis: int
    attempts: int = 4

    def to_json(self) -> dict[str, JsonValue]:
        """Return the inventory as it is sent."""
        return {"cpu": {"capacity_millis": self.cpu_capacity_millis}, "attempts": self.attempts}


@dataclass(frozen=True, slots=True)
class Registration:
    """What a session is registered with.

    Attributes:
        instance_id: Identity of this worker; saved at the first start and kept (IDN-06).
        name: Name for the reader.
        node_id: The node it runs on.
        inventory: What the node has.
    """

    instance_id: str
    name: str
    node_id: str
    inventory: NodeInventory

    def validate(self) -> None:
        """Check the record: identity first, then CPU (REG-04).

        Blanks are refused like the empty string (REG-05): a name nobody can see is none.

        Raises:
            DomainError: Of kind invalid, with the cause chained.
        """
        if not all(text.strip() for text in (self.instance_id, self.name, self.node_id)):
            raise DomainError(Kind.INVALID, "Worker 注册信息缺少实例、名称或 Node") from ValueError(
                "worker instance ID, name, and node ID are required"
            )
        if self.inventory.cpu_capacity_millis < 1:
            raise DomainError(Kind.INVALID, "Worker CPU 资源采集不可用") from ValueError(
                "worker CPU inventory is required"
            )


@dataclass(frozen=True, slots=True)
class Session:
    """A registered session; sending and commands belong to it (SES-01).

    Attributes:
        session_id: The coordinator's name for it.
    """

    session_id: str


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One process life of the worker, as the store counts it.

    Attributes:
        instance_id: The identity that was saved at the first start.
        boot: Number of this start, from 1.
    """

    instance_id: str
    boot: int
