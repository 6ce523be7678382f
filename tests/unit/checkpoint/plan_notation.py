"""The notation of the worked examples, turned into values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker_under_test.checkpoint import AnomalyKind, Snapshot, StepDef

if TYPE_CHECKING:
    from pathlib import Path

SHORT_NAMES = {
    "empty": AnomalyKind.EMPTY_STEP_ID,
    "dup": AnomalyKind.DUPLICATE_STEP,
    "not_in_graph": AnomalyKind.DONE_NOT_IN_GRAPH,
    "out_of_order": AnomalyKind.DONE_OUT_OF_ORDER,
    "pending_at_end": AnomalyKind.COMPLETE_WITH_PENDING,
}
NOTHING = "–"
_STEP = re.compile(r"(?P<id>[^!<\[\]]+)(?P<empty_list>\[\])?(?P<isolated>!)?(<(?P<names>.+))?")
_ANOMALY = re.compile(r"(?P<kind>\w+)(\((?P<step>.*)\))?")


@dataclass(frozen=True)
class Example:
    """One row of the table."""

    name: str
    graph: tuple[StepDef, ...]
    snapshot: Snapshot | None
    skip: tuple[str, ...]
    run: tuple[str, ...]
    anomalies: tuple[tuple[AnomalyKind, str], ...]
    blocked: bool


def read_examples(path: Path) -> list[Example]:
    """Read every row whose first cell is the name of an example."""
    examples = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("| BP-X"):
            name, graph, snapshot, skip, run, anomalies, blocked, _ = (
                cell.strip() for cell in line.strip("|").split("|")
            )
            examples.append(
                Example(
                    name,
                    parse_graph(graph.strip("`")),
                    parse_snapshot(snapshot.strip("`")),
                    parse_ids(skip),
                    parse_ids(run),
                    parse_anomalies(anomalies),
                    {"yes": True, "no": False}[blocked],
                )
            )
    return examples


def parse_graph(text: str) -> tuple[StepDef, ...]:
    """Parse steps such as ``a b<a,c c! d[] ∅``."""
    return () if text == "(empty)" else tuple(_parse_step(word) for word in text.split())


def _parse_step(word: str) -> StepDef:
    match = _STEP.fullmatch(word)
    assert match is not None, word
    names = match["names"]
    return StepDef(
        _parse_id(match["id"]),
        depends_on=[]
        if match["empty_list"]
        else names and [_parse_id(n) for n in names.split(",")],
        isolated=match["isolated"] is not None,
    )


def parse_snapshot(text: str) -> Snapshot | None:
    """Parse ``nil``, ``{a,b}`` or ``{a,b} / completed``."""
    if text == "nil":
        return None
    done, _, status = text.partition(" / ")
    assert done.startswith("{"), text
    assert done.endswith("}"), text
    return Snapshot(
        run_id="run",
        seq=1,
        status=_parse_id(status) if status else "running",
        done=parse_ids(done[1:-1]),
    )


def parse_ids(text: str) -> tuple[str, ...]:
    """Parse ``a,b``; nothing is written as a dash or not at all."""
    return () if text in ("", NOTHING) else tuple(_parse_id(word) for word in text.split(","))


def parse_anomalies(text: str) -> tuple[tuple[AnomalyKind, str], ...]:
    """Parse ``dup(a); pending_at_end`` into kinds and steps."""
    parsed = []
    for word in () if text == NOTHING else text.split("; "):
        match = _ANOMALY.fullmatch(word)
        assert match is not None, word
        parsed.append((SHORT_NAMES[match["kind"]], _parse_id(match["step"] or "''")))
    return tuple(parsed)


def _parse_id(word: str) -> str:
    return "" if word in ("∅", "''") else word
