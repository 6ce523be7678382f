"""Malformed children: one that ended badly is told from one that is lost, and none runs twice."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import pytest
from test_worker_malformed_http import Saving

from worker_under_test.adapters.local_processes import SHOWN_BYTES, LocalProcesses
from worker_under_test.capabilities.command import RunCommand
from worker_under_test.domain.command import Command
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.event import EventKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from worker_under_test.domain.event import AttemptEvent
    from worker_under_test.domain.json_value import JsonObject, JsonValue

TOKEN = "command-attempt-1"
SHELL = ["/bin/sh", "-c"]

BAD_ARGV: tuple[JsonValue, ...] = (
    None, "true", [], [1], [""], ["a\0b"], ["true", None], {"a": 1}, [["true"]], ["x"] * 101,
    ["\ud800"], ["true", "\udcff"], [True], [1.5],
)  # fmt: skip


async def ran(root: Path, payload: JsonObject, reporter: Saving) -> AttemptEvent | None:
    """Execute a child, in a bounded time."""
    work = RunCommand(LocalProcesses(root / "processes"))
    async with asyncio.timeout(30):
        return await work.execute(Command("p1", "command", 1, payload), reporter)


@pytest.mark.requirement("ATT-08", "PRC-01")
@pytest.mark.parametrize("argv", BAD_ARGV)
def test_a_child_that_cannot_be_is_refused(tmp_path: Path, argv: JsonValue) -> None:
    """The command is refused as invalid before a token is saved."""
    reporter = Saving()
    with pytest.raises(DomainError) as refusal:
        asyncio.run(ran(tmp_path, {"argv": argv}, reporter))
    assert refusal.value.kind is Kind.INVALID
    assert reporter.checkpoint is None


@pytest.mark.requirement("ATT-08", "PRC-01")
def test_a_child_that_the_kernel_refuses_is_an_error(tmp_path: Path) -> None:
    """An argument that is too long for the kernel is an error, and there is no child."""
    with pytest.raises(OSError, match="too long"):
        asyncio.run(ran(tmp_path, {"argv": ["true", "x" * (1 << 18)]}, Saving()))


SIGNALS = (1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 31)
FAILED, LOST, DONE = EventKind.FAILED, EventKind.UNKNOWN, EventKind.SUCCEEDED
CHILDREN: dict[str, tuple[list[str], EventKind, int | None]] = {
    **{f"exits {n}": ([*SHELL, f"exit {n}"], FAILED, n) for n in (1, 2, 126, 127, 128, 137, 255)},
    **{f"signal {n}": ([*SHELL, f"kill -{n} $$"], FAILED, 128 + n) for n in SIGNALS},
    "is missing": (["/nowhere/at/all"], FAILED, 127),
    "is a directory": (["/tmp"], FAILED, 126),
    "may not be executed": (["./noted"], FAILED, 126),
    "has no interpreter": (["./lost"], FAILED, 127),
    "has a name that is no path": (["\u202e\n"], FAILED, 127),
    "kills its keeper": ([*SHELL, "kill -9 $PPID"], LOST, None),
    "kills its group": ([*SHELL, "kill -9 0"], LOST, None),
    "writes no text": ([*SHELL, r"printf '\377\0\200\33[2J'; exit 3"], FAILED, 3),
    "writes much": ([*SHELL, "yes | head -c 20000000; exit 4"], FAILED, 4),
    "writes without an end of line": ([*SHELL, "printf x; exit 4"], FAILED, 4),
    "writes more than it may": ([*SHELL, "ulimit -f 0; echo x; exit 4"], FAILED, 153),
    "closes its output": ([*SHELL, "exec >&-; exit 5"], FAILED, 5),
    "closes everything": ([*SHELL, "exec <&- >&- 2>&-; exit 6"], FAILED, 6),
    "leaves one behind": ([*SHELL, "sleep 1 & exit 8"], FAILED, 8),
    "reads": (["cat"], DONE, 0),
    "removes its directory": ([*SHELL, 'rm -r "$PWD"; exit 0'], LOST, None),
    "removes its output": ([*SHELL, "rm output; exit 9"], FAILED, 9),
    "makes its output a directory": ([*SHELL, "rm output; mkdir output; exit 9"], FAILED, 9),
    "makes its output a pipe": ([*SHELL, "rm output; mkfifo output; exit 9"], FAILED, 9),
    "makes its output a device": ([*SHELL, "rm output; ln -s /dev/zero output"], DONE, 0),
    "writes its own result": ([*SHELL, "printf 0 >exit; exit 7"], FAILED, 7),
    "writes half of a result": ([*SHELL, "printf 0 >exit.tmp; kill -9 0"], LOST, None),
    "makes its result a directory": ([*SHELL, "mkdir exit"], LOST, None),
    "makes its result a pipe": ([*SHELL, "mkfifo exit; exit 7"], FAILED, 7),
    "makes a link of its result": ([*SHELL, "echo 0 >mine; ln -s mine exit.tmp"], LOST, None),
    "keeps its result from being written": ([*SHELL, "mkdir exit.tmp"], LOST, None),
}


@pytest.fixture
def _signals_as_they_are_by_default() -> Iterator[None]:
    """Ignore no signal: a program that was started in the background hands that on to its own."""
    ignored = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.mark.requirement("PRC-01", "PRC-05", "ATT-08")
@pytest.mark.usefixtures("_signals_as_they_are_by_default")
@pytest.mark.parametrize("case", CHILDREN)
def test_a_child_that_ends_badly_is_told_from_one_that_is_lost(tmp_path: Path, case: str) -> None:
    """An exit code is an answer and a lost one is not; both are told in bounded words."""
    argv, kind, code = CHILDREN[case]
    directory = tmp_path / "processes" / TOKEN
    directory.mkdir(parents=True)
    (directory / "noted").write_text("#!/bin/sh\n", encoding="utf-8")
    (directory / "lost").write_text("#!/nowhere/at/all\n", encoding="utf-8")
    (directory / "lost").chmod(0o755)
    payload: JsonObject = {"argv": list(argv)}
    event = asyncio.run(ran(tmp_path, payload, Saving()))
    assert event is not None
    assert (event.kind, event.body.get("exit_code")) == (kind, code)
    assert len(str(event.body.get("output", ""))) <= SHOWN_BYTES
    assert kind is not LOST or event.body["reason"]


CODES: dict[str, bytes] = {
    "empty": b"",
    "a letter": b"x",
    "negative": b"-1",
    "too large": b"256",
    "a fraction": b"1.0",
    "of another base": b"0x1",
    "after a space": b" 1",
    "with an end of line": b"1\n",
    "with zeros": b"007",
    "no UTF-8": b"\xff\xfe",
    "in other digits": "\u0663".encode(),
    "of many digits": b"9" * 5000,
    "of zeros": b"\0" * 4096,
    "two": b"0 1",
}
STRANGE: dict[str, Callable[[Path], object]] = {
    "a directory": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "a link to a file": lambda path: path.symlink_to("/proc/sys/kernel/cap_last_cap"),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "missing": lambda path: None,
}


def left(root: Path) -> Path:
    """Return the directory of a child of an earlier life that is gone."""
    directory = root / "processes" / TOKEN
    directory.mkdir(parents=True)
    return directory


def found_again(root: Path) -> AttemptEvent:
    """Execute the command of a child of an earlier life; it is not started again."""
    payload: JsonObject = {"argv": [*SHELL, "touch ran"]}
    event = asyncio.run(ran(root, payload, Saving({"token": TOKEN})))
    assert event is not None
    assert not (root / "processes" / TOKEN / "ran").exists()
    return event


@pytest.mark.requirement("PRC-05", "REC-16")
@pytest.mark.parametrize("case", [*CODES, *STRANGE])
def test_a_result_that_is_damaged_is_no_result(tmp_path: Path, case: str) -> None:
    """The outcome is unknown, with a reason; it is neither guessed nor tried again."""
    path = left(tmp_path) / "exit"
    if case in CODES:
        path.write_bytes(CODES[case])
    else:
        STRANGE[case](path)
    event = found_again(tmp_path)
    assert event.kind is EventKind.UNKNOWN
    assert event.body["reason"] == "the child is gone and left no exit code"


@pytest.mark.requirement("PRC-05")
@pytest.mark.parametrize("code", [0, 1, 9, 10, 99, 100, 199, 200, 249, 250, 255])
def test_a_result_that_is_whole_is_taken(tmp_path: Path, code: int) -> None:
    """Every exit code is read, up to the borders of its form."""
    (left(tmp_path) / "exit").write_text(str(code), encoding="ascii")
    event = found_again(tmp_path)
    assert event.body["exit_code"] == code
    assert event.kind is (EventKind.FAILED if code else EventKind.SUCCEEDED)


def write(data: bytes) -> Callable[[Path], object]:
    """Return what writes some bytes."""
    return lambda path: path.write_bytes(data)


def write_hole(path: Path) -> None:
    """Make a file of four terabytes that holds nothing."""
    path.touch()
    os.truncate(path, 1 << 42)


OUTPUTS: dict[str, Callable[[Path], object]] = {
    **STRANGE,
    "empty": write(b""),
    "no UTF-8": write(b"\xff\xfe\0\x80"),
    "half of a letter": write("\u00fc".encode()[:1]),
    "the end of a letter first": write(("\u00fc" * SHOWN_BYTES).encode()[1:]),
    "escapes": write(b"\x1b[2J\x1b]0;title\x07"),
    "larger than the memory": write_hole,
}


@pytest.mark.requirement("PRC-05", "ATT-08")
@pytest.mark.parametrize("case", OUTPUTS)
def test_an_output_that_is_damaged_takes_no_result_away(tmp_path: Path, case: str) -> None:
    """The exit code counts, and what is shown is bounded text."""
    directory = left(tmp_path)
    (directory / "exit").write_text("0", encoding="ascii")
    OUTPUTS[case](directory / "output")
    event = found_again(tmp_path)
    assert event.kind is EventKind.SUCCEEDED
    output = event.body["output"]
    assert isinstance(output, str)
    assert len(output) <= SHOWN_BYTES
    assert bool(output) == (case not in STRANGE and case != "empty")


@pytest.mark.requirement("PRC-02", "REC-16")
def test_a_child_that_removed_its_directory_is_not_started_again(tmp_path: Path) -> None:
    """A saved identity says that it was started, whatever the directory says."""
    reporter = Saving()
    removes: JsonObject = {"argv": [*SHELL, 'rm -r "$PWD"']}
    asyncio.run(ran(tmp_path, removes, reporter))
    assert not (tmp_path / "processes" / TOKEN).exists()
    again: JsonObject = {"argv": [*SHELL, "echo"]}
    event = asyncio.run(ran(tmp_path, again, reporter))
    assert event is not None
    assert event.kind is EventKind.UNKNOWN
    assert not (tmp_path / "processes" / TOKEN).exists()


def test_there_are_so_many() -> None:
    """The cases are counted, so that none is lost from the lists."""
    damaged = len(CODES) + len(STRANGE) + len(OUTPUTS)
    assert len(BAD_ARGV) + len(CHILDREN) + damaged == 96
