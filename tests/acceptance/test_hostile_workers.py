"""A worker can only hurt itself: each kind of harm is its own verdict, and the run goes on."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from acceptance_command import Command, Ran

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKERS = Path(__file__).parent / "hostile" / "workers.py"

HELD = ("good", "deep-tree", "unreadable", "cut-database", "flood", "surrogate")
NOT_HELD = {
    "real-time-signal": ("wrong_death", "killed by SIGRTMIN+6"),
    "ends-group": ("wrong_death", "killed by SIGTERM"),
    "kills-parent": ("wrong_death", "the supervisor was killed by SIGKILL"),
    "stops-parent": ("wrong_death", "the supervisor was stopped by SIGSTOP"),
    "stops-itself": ("wrong_death", "was stopped, but not by itself at a point"),
    "removes-workspace": ("unknown", "the worker has removed or replaced files"),
    "removes-control": ("unknown", "the trace of incarnation 1 was removed"),
    "replaces-control": ("unknown", "the trace of incarnation 1 cannot be read"),
    "replaces-directory": ("wrong_death", "NotADirectoryError"),
    "replaces-output": ("wrong_death", "there is no file with its output"),
    "forges-trace": ("unknown", "has a line that no point has written"),
    "long-path": ("unknown", "is longer than 3,500 bytes"),
    "hole": ("wrong_death", "Bounds(file_mib=...)"),
    "fills-disk": ("unknown", "Bounds(workspace_mib=...)"),
    "floods-disk": ("wrong_death", "Bounds(workspace_mib=...)"),
    "takes-memory": ("wrong_death", "Bounds(memory_mib=...)"),
    "opens-files": ("wrong_death", "Bounds(open_files=...)"),
    "starts-processes": ("wrong_death", "Bounds(processes=...)"),
    "forks-for-ever": ("broken", ""),
    "hangs": ("hung", "needs quiet_at in its scenario"),
    "thread-in-warm-up": ("unknown", "left threads behind"),
    "exit-in-warm-up": ("unknown", "SystemExit: 3"),
    "kill-in-warm-up": ("unknown", "the lane was killed by SIGKILL"),
    "workload-raises": ("unknown", "SystemExit: no workload today"),
    "workload-of-nonsense": ("unknown", "not a Workload"),
    "oracle-exits": ("unknown", "oracle leaves failed: SystemExit"),
    "oracle-says-nothing": ("unknown", "oracle says-nothing failed"),
}


@pytest.fixture(scope="module")
def ran(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Ran, dict[str, Any], Path]]:
    """Give a run of all of them, its record, and the directory that its workspaces were in."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as root:
        command = Command(tmp_path_factory.mktemp("hostile"))
        done = command.run("--scenarios", str(WORKERS), "--report", "none", "--root", root)
        yield done, command.record(), Path(root)


def verdicts(record: dict[str, Any], scenario: str) -> Counter[str]:
    """Count the verdicts of a scenario's experiments."""
    return Counter(row["verdict"] for row in record["experiments"] if row["scenario"] == scenario)


def test_no_worker_ends_the_run(ran: tuple[Ran, dict[str, Any], Path]) -> None:
    """The command says of every scenario what came of it, and blames none of it on itself."""
    done, record, _ = ran
    assert done.code == 3, done.err
    assert {row["name"] for row in record["scenarios"]} == {*HELD, *NOT_HELD}
    assert not record["interrupted"]


@pytest.mark.parametrize("scenario", HELD)
def test_what_does_no_harm_holds(scenario: str, ran: tuple[Ran, dict[str, Any], Path]) -> None:
    """What is odd, but no fault, is copied, judged and deleted; beside others who do harm."""
    _, record, _ = ran
    found = verdicts(record, scenario)
    assert set(found) == {"held"}
    assert found["held"] > 1


@pytest.mark.parametrize("scenario", NOT_HELD)
def test_harm_is_a_verdict_of_its_own(scenario: str, ran: tuple[Ran, dict[str, Any], Path]) -> None:
    """Each experiment has its verdict, with a sentence that says what happened."""
    _, record, _ = ran
    verdict, said = NOT_HELD[scenario]
    assert set(verdicts(record, scenario)) == {verdict}
    notes = [row["note"] for row in record["experiments"] if row["scenario"] == scenario]
    assert all(said in note for note in notes), notes


def test_nothing_is_left_for_the_next_run(
    ran: tuple[Ran, dict[str, Any], Path], tmp_path: Path
) -> None:
    """Whatever a worker has made is deleted, and the next run is like any other."""
    _, _, root = ran
    command = Command(tmp_path)
    done = command.run("good", "--scenarios", str(WORKERS), "--report", "none", "--root", str(root))
    assert done.code == 0, done.err
    assert not done.err
    assert not list(root.iterdir())
