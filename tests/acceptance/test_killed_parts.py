"""Parts of a run are killed at drawn moments: nothing is left, and no result is another."""

from __future__ import annotations

import os
import random
import signal
from typing import TYPE_CHECKING, Any

import pytest
from killed_runs import KilledRun, still_there

if TYPE_CHECKING:
    from pathlib import Path

KILLS = int(os.environ.get("CRASH_HARNESS_KILLS", "1"))
"""How many times each kind of part is killed."""

SEED = os.environ.get("CRASH_HARNESS_KILLS_SEED") or str(random.SystemRandom().getrandbits(32))
"""Draws the moments; it is printed when a test fails."""

JOBS = 2


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the directory of all runs: what one leaves is the next one's to clear up."""
    return tmp_path_factory.mktemp("killed-parts")


@pytest.fixture(scope="module")
def undisturbed(place: Path) -> tuple[dict[str, Any], int]:
    """Give the record of a run that nothing happens to, and how many lines its workers told."""
    with KilledRun(place, JOBS) as run:
        code, said = run.end()
        assert code == 0, said
        return run.record(), run.read_told()


def drawn(kind: str, number: int, lines: int) -> tuple[int, int]:
    """Draw after which line a part is killed, and which of several."""
    draw = random.Random(f"{SEED}/{kind}/{number}")
    # Not the last lines: what a run shares, and so how many there are, depends on its lanes.
    at, choose = draw.randint(1, lines // 2), draw.randrange(JOBS)
    print(f"CRASH_HARNESS_KILLS_SEED={SEED}: {kind} {number} after line {at}")  # noqa: T201
    return at, choose


@pytest.mark.parametrize("number", range(KILLS))
@pytest.mark.parametrize("kind", ["lane", "supervisor", "world"])
def test_a_run_whose_part_is_killed_has_the_same_record(
    place: Path, undisturbed: tuple[dict[str, Any], int], kind: str, number: int
) -> None:
    """It ended the whole run with exit code 4, whatever else there was to be found."""
    record, lines = undisturbed
    at, choose = drawn(kind, number, lines)
    with KilledRun(place, JOBS) as run:
        run.wait_until_told(at)
        run.kill(kind, choose=choose)
        code, said = run.end()
        assert code == 0, said
        assert run.record() == record
        assert still_there(place) == []
        assert list(run.root.iterdir()) == []


@pytest.mark.parametrize("number", range(KILLS))
@pytest.mark.parametrize("kind", ["main", "main lane supervisor"])
def test_a_killed_run_is_gone_on_with_to_the_same_record(
    place: Path, undisturbed: tuple[dict[str, Any], int], kind: str, number: int
) -> None:
    """Hours were lost, and children of a worker lived on when all were killed above them."""
    record, lines = undisturbed
    at, choose = drawn(kind, number, lines)
    before = set(place.glob("out/2*"))
    with KilledRun(place, JOBS) as run:
        run.wait_until_told(at)
        run.kill(*kind.split(), choose=choose)
        assert run.process.wait() == -signal.SIGKILL
    (killed,) = set(place.glob("out/2*")) - before
    with KilledRun(place, JOBS, "--resume", killed.name) as after:
        code, said = after.end()
        assert code == 0, said
        assert (place / "out" / "latest").resolve() == killed
        assert after.record() == record
        assert still_there(place) == []
        assert list(after.root.iterdir()) == []


def test_another_run_clears_what_a_killed_one_has_left(
    place: Path, undisturbed: tuple[dict[str, Any], int]
) -> None:
    """Nobody has to go on with a run for its processes and directories to go."""
    _, lines = undisturbed
    at, choose = drawn("main lane supervisor", KILLS, lines)
    with KilledRun(place, JOBS) as run:
        run.wait_until_told(at)
        run.kill("main", "lane", "supervisor", choose=choose)
        assert run.process.wait() == -signal.SIGKILL
    with KilledRun(place, 1, "careful", "--at", "order.charge.after=kill") as after:
        code, said = after.end()
        assert code == 0, said
        assert still_there(place) == []
        assert list(after.root.iterdir()) == []
