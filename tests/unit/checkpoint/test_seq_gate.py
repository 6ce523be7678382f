"""The gate: its traces, its bounds, and what it can and cannot stop."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest

from worker_under_test.checkpoint import InvalidSnapshotError, SeqGate, Snapshot, StaleSeq
from worker_under_test.checkpoint.gate import MAX_RELEASABLE

ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in Path(__file__).with_name("gate_traces.txt").read_text(encoding="utf-8").splitlines()
    if re.match(r"\| [ARS]-?\d", line)
]


def snapshot(seq: int, run_id: str = "run") -> Snapshot:
    """Return a snapshot of a run."""
    return Snapshot(run_id, seq, "running")


def accepts(gate: SeqGate, seq: int, run_id: str = "run") -> bool:
    """Tell whether the gate lets a number pass."""
    try:
        gate.accept(snapshot(seq, run_id))
    except StaleSeq:
        return False
    return True


def perform(gate: SeqGate, command: str) -> str:
    """Perform one command of a script and return its result as the table writes it."""
    seq = int(command[1:])
    match command[0]:
        case "A":
            answer = "ok" if accepts(gate, seq) else "stale"
        case "R":
            answer = str(gate.release("run", seq)).lower()
        case _:
            gate.seed("run", seq)
            answer = ""
    last = f"L{gate.last('run')}"
    return f"{answer}/{last}" if answer else last


@pytest.mark.requirement("GAT-02..GAT-07", "GAT-12..GAT-25")
@pytest.mark.parametrize(("script", "stated"), ROWS, ids=[script for script, _ in ROWS])
def test_trace(script: str, stated: str) -> None:
    """The gate answers each script as the table says."""
    gate = SeqGate()
    results = [perform(gate, command) for command in script.split("; ")]
    expected = stated.split(", ")
    if expected[0] == "…":
        expected = expected[1:]
    for result, wanted in zip(results[-len(expected) :], expected, strict=True):
        assert result == wanted or result.partition("/")[0] == wanted


def test_every_trace_is_there() -> None:
    """The 15 rows of the first table are all read, and the 14 of the second."""
    assert len(ROWS) == 29


@pytest.mark.requirement("GAT-01")
def test_a_gate_is_made_by_its_constructor() -> None:
    """Without the constructor a gate is of no use, and two gates share nothing."""
    with pytest.raises(AttributeError):
        SeqGate.__new__(SeqGate).accept(snapshot(1))
    one, other = SeqGate(), SeqGate()
    one.accept(snapshot(5))
    assert (one.last("run"), other.last("run")) == (5, 0)


@pytest.mark.requirement("GAT-07", "GAT-08", "STO-20")
def test_runs_do_not_mix() -> None:
    """Each run has its own numbers."""
    gate = SeqGate()
    assert accepts(gate, 9, "r1")
    assert accepts(gate, 1, "r2")
    gate.seed("r3", 4)
    assert gate.release("r2", 1)
    assert [gate.last(run_id) for run_id in ("r1", "r2", "r3", "r4")] == [9, 0, 4, 0]


@pytest.mark.requirement("GAT-21", "SNP-17")
@pytest.mark.parametrize("seq", [2**63, 2**64 - 1, 1.5, True])
def test_a_seed_is_a_number(seq: object) -> None:
    """What is not a number is refused as a seed and changes nothing."""
    gate = SeqGate()
    with pytest.raises(InvalidSnapshotError):
        gate.seed("run", cast("int", seq))
    assert gate.last("run") == 0


@pytest.mark.requirement("GAT-21", "GAT-26")
def test_a_new_gate_lets_the_old_write_pass_unless_seeded() -> None:
    """The gate is memory only; after a restart it knows what it is told."""
    restarted = SeqGate()
    assert accepts(restarted, 3)
    seeded = SeqGate()
    seeded.seed("run", 5)
    assert not accepts(seeded, 3)
    assert not accepts(seeded, 5)
    assert accepts(seeded, 6)


@pytest.mark.requirement("ERR-02", "GAT-04")
def test_a_refusal_says_what_was_offered() -> None:
    """The error names run, offered and accepted number."""
    gate = SeqGate()
    gate.accept(snapshot(5))
    with pytest.raises(StaleSeq, match="run 'run': 4 offered, 5 accepted"):
        gate.accept(snapshot(4))


@pytest.mark.requirement("GAT-17", "AMB-17")
def test_memory_of_a_long_run_is_bounded() -> None:
    """Nested releases reach far back, then stop; the value never falls below."""
    gate = SeqGate()
    for seq in range(1, MAX_RELEASABLE + 11):
        gate.accept(snapshot(seq))
    for seq in range(MAX_RELEASABLE + 10, 10, -1):
        assert gate.release("run", seq)
    assert not gate.release("run", 10)
    assert gate.last("run") == 10


class Meeting:
    """Where a call that is half done meets another one, if the gate lets the other one in.

    The first call waits here in its middle. The other call goes on as soon as it does. If calls
    exclude each other, the other one cannot end before the wait runs out.
    """

    def __init__(self) -> None:
        self.half_done = threading.Event()
        self.other_ended = threading.Event()

    def wait(self) -> None:
        """Be half done; give the other call time."""
        self.half_done.set()
        self.other_ended.wait(timeout=0.05)


class SlowSnapshot:
    """A snapshot whose number takes its time to be read."""

    run_id = "run"

    def __init__(self, seq: int, meeting: Meeting) -> None:
        self._seq = seq
        self._meeting = meeting

    @property
    def seq(self) -> int:
        """The number, after the meeting."""
        self._meeting.wait()
        return self._seq


class SlowNumber(int):
    """A number that takes its time to be compared."""

    meeting: Meeting

    def __ne__(self, other: object) -> bool:
        """Compare after the meeting."""
        self.meeting.wait()
        return int(self) != other

    __hash__ = int.__hash__


@pytest.mark.requirement("GAT-28", "HAR-07")
@pytest.mark.parametrize("call", ["accept", "release"])
def test_calls_exclude_each_other(call: str) -> None:
    """While one call is half done, another one of the same number does not get in."""
    gate, meeting = SeqGate(), Meeting()
    if call == "accept":
        slow = cast("Snapshot", SlowSnapshot(5, meeting))
    else:
        gate.accept(snapshot(5))
        number = SlowNumber(5)
        number.meeting = meeting

    def first() -> bool:
        if call == "release":
            return gate.release("run", number)
        try:
            gate.accept(slow)
        except StaleSeq:
            return False
        return True

    def other() -> bool:
        assert meeting.half_done.wait(timeout=30)
        passed = accepts(gate, 5) if call == "accept" else gate.release("run", 5)
        meeting.other_ended.set()
        return passed

    with ThreadPoolExecutor(2) as pool:
        outcomes = [future.result() for future in (pool.submit(first), pool.submit(other))]
    assert outcomes == [True, False]


@pytest.mark.requirement("GAT-28")
def test_one_of_many_passes() -> None:
    """Of eight threads that offer the same number at once exactly one passes."""
    gate = SeqGate()
    threads, rounds = 8, 200
    barrier = threading.Barrier(threads)

    def offer(_: int) -> list[bool]:
        passed = []
        for seq in range(1, rounds + 1):
            barrier.wait(timeout=30)
            passed.append(accepts(gate, seq))
        return passed

    with ThreadPoolExecutor(threads) as pool:
        by_round = zip(*pool.map(offer, range(threads)), strict=True)
        assert [sum(passed) for passed in by_round] == [1] * rounds
    assert gate.last("run") == rounds


@pytest.mark.requirement("GAT-24", "GAT-28")
def test_accepted_numbers_only_rise() -> None:
    """Whatever threads accept, take back and seed, last never falls below a seed.

    Each thread takes back half of what it accepted, so that releases race with accepts and seeds.
    """
    gate = SeqGate()
    seeded = [0]

    def churn(thread: int) -> int:
        kept = 0
        for seq in range(thread + 1, 2000, 4):
            if accepts(gate, seq):
                if seq % 2 or not gate.release("run", seq):
                    kept = seq
            elif seq % 50 == thread:
                gate.seed("run", seq)
                seeded[0] = max(seeded[0], seq)
            assert gate.last("run") >= kept
        return kept

    with ThreadPoolExecutor(4) as pool:
        kept = list(pool.map(churn, range(4)))
    assert gate.last("run") >= max(*kept, seeded[0])
