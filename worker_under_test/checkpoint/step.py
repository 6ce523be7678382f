"""One step of an orchestration graph, as the host declares it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class StepDef:
    """A step: its id, its place in the graph and what it waits for (STP-01).

    ========================================  ====================================================
    ``StepDef("b")``                          waits for every earlier step (STP-03, AMB-1)
    ``StepDef("b", depends_on=["a"])``        waits for ``a`` only, wherever it stands (STP-04)
    ``StepDef("b", isolated=True)``           waits for nothing (STP-07)
    ========================================  ====================================================

    Later undeclared steps wait for this one in all three cases (STP-08).

    Attributes:
        id: Identity within the graph, compared exactly (STP-20). A step with an empty id is left
            out of every plan and reported.
        label: For people; never interpreted (STP-02).
        depends_on: Ids of all direct predecessors, kept as a tuple. None and an empty sequence
            both mean *undeclared*, so that a list which a host assembled and which came out empty
            falls to the strict side (STP-06).
        isolated: Waits for no other step. It says nothing about where the step runs (STP-09). With
            ``depends_on`` it is a contradiction, and ``depends_on`` wins (AMB-7).

    Raises:
        TypeError: ``depends_on`` is a single string, which would be read as one id per letter.
    """

    id: str = ""
    label: str = ""
    depends_on: Sequence[str] | None = ()
    isolated: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.depends_on, str):
            raise TypeError(f"depends_on must be a sequence of step ids, not {self.depends_on!r}")
        object.__setattr__(self, "depends_on", tuple(self.depends_on or ()))
