"""A run of the real command, parts of which are killed from outside, by their place in it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from telling_workers import DAEMON, PIPE

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SCENARIOS = "tests/acceptance/telling_workers.py"
DEADLINE_S = 120.0
_SPAWNED = "spawn_main"
_FORKER = "harness.processes.forker"


class Found(NamedTuple):
    """A process of a run: a pidfd stands for it, whatever becomes of its pid."""

    pid: int
    fd: int


def _children(pid: int) -> Iterator[tuple[int, str]]:
    """Give pid and command line of what a process has started (proc(5))."""
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text(encoding="ascii").split():
                with suppress(OSError):
                    line = Path(f"/proc/{child}/cmdline").read_bytes()
                    yield int(child), line.replace(b"\0", b" ").decode(errors="replace")


def parts(pid: int) -> dict[str, list[int]]:
    """Return the pids of the parts of a run, by what they are.

    Args:
        pid: Of the command.
    """
    lanes = [child for child, line in _children(pid) if _SPAWNED in line]
    below = [each for lane in lanes for each in _children(lane)]
    return {
        "main": [pid],
        "lane": lanes,
        "supervisor": [child for child, line in below if _FORKER in line],
        "world": [child for child, line in below if _SPAWNED in line],
    }


class KilledRun:
    """A run that can be killed in parts when its workers have told a number of lines.

    Args:
        place: Directory for the record, the workspaces, and the pipe.
        jobs: How many lanes.
        more: Further arguments of the command.
    """

    def __init__(self, place: Path, jobs: int, *more: str) -> None:
        self.out, self.root = place / "out", place / "root"
        self.root.mkdir(exist_ok=True)
        pipe = place / "pipe"
        if not pipe.exists():
            os.mkfifo(pipe)
        self._pipe = os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        with suppress(BlockingIOError):  # what an earlier run has told
            while os.read(self._pipe, 1 << 16):
                pass
        self.mark = daemon_name(place)
        command = [sys.executable, "-m", "harness", "run", "--scenarios", SCENARIOS]
        command += ["--tier", "smoke", "--jobs", str(jobs), "--out", str(self.out)]
        self.process = subprocess.Popen(
            [*command, "--root", str(self.root), *more],
            cwd=ROOT,
            env={**os.environ, PIPE: str(pipe), DAEMON: self.mark},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.told = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.process.kill()
        self.process.communicate()
        os.close(self._pipe)

    def wait_until_told(self, lines: int) -> None:
        """Wait until workers have told so many lines in all."""
        watched = os.pidfd_open(self.process.pid)
        end = time.monotonic() + DEADLINE_S
        try:
            while self.told < lines:
                left = end - time.monotonic()
                ready, _, _ = select.select([self._pipe, watched], [], [], max(0.0, left))
                assert ready, f"only {self.told} of {lines} lines were told"
                if self._pipe in ready:
                    self.told += os.read(self._pipe, 2).count(b"\n")
                else:
                    raise AssertionError(f"the run ended when it had told {self.told} lines")
        finally:
            os.close(watched)

    def read_told(self) -> int:
        """Return how many lines were told that nobody has read; the run has ended."""
        with suppress(BlockingIOError):
            while more := os.read(self._pipe, 1 << 16):
                self.told += more.count(b"\n")
        return self.told

    def kill(self, *kinds: str, choose: int = 0) -> None:
        """Kill one part of each kind, all at once; all of a kind if the main process is among them.

        A part may be about to be replaced, or a lane may have no world yet: then there is another.

        Args:
            *kinds: What to kill.
            choose: Says which, if there are several.
        """
        found = parts(self.process.pid)
        chosen: list[Found] = []
        for kind in kinds:
            pids = found[kind]
            if "main" not in kinds:
                assert pids, f"no {kind} to kill: {found}"
                pids = [pids[choose % len(pids)]]
            for pid in pids:
                with suppress(ProcessLookupError):
                    chosen.append(Found(pid, os.pidfd_open(pid)))
        # Those that the pidfds stand for are still what was looked up, or have ended.
        again = parts(self.process.pid)
        ours = {pid for kind in kinds for pid in again[kind]}
        for each in chosen:
            if each.pid in ours:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(each.fd, signal.SIGKILL)
            os.close(each.fd)

    def end(self) -> tuple[int, str]:
        """Wait for the end, and return exit code and output."""
        said, _ = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, said

    def record(self) -> dict[str, Any]:
        """Return the latest record, without what two runs need not have alike."""
        text = (self.out / "latest" / "results.json").read_text(encoding="utf-8")
        record: dict[str, Any] = json.loads(text)
        del record["timing"]
        return record


def daemon_name(place: Path) -> str:
    """Return the name of the daemons that workers of a run leave: the same for every run there."""
    return f"left-by-{place.name}"


def still_there(place: Path) -> list[str]:
    """Return what lives of the runs in a place: all but daemons know the pipe, and those a name.

    What is about to end is waited for.
    """
    end = time.monotonic() + DEADLINE_S
    while (found := _of_runs(place)) and time.monotonic() < end:
        pid = next(iter(found))
        with suppress(ProcessLookupError):
            fd = os.pidfd_open(pid)
            if pid in _of_runs(place):
                select.select([fd], [], [], max(0.0, end - time.monotonic()))
            os.close(fd)
    return list(found.values())


def _of_runs(place: Path) -> dict[int, str]:
    pipe, daemon = f"{PIPE}={place / 'pipe'}\0".encode(), daemon_name(place).encode()
    found = {}
    for path in Path("/proc").iterdir():
        if path.name.isdecimal() and int(path.name) != os.getpid():
            with suppress(OSError):
                line = (path / "cmdline").read_bytes()
                if line.startswith(daemon + b"\0") or pipe in (path / "environ").read_bytes():
                    found[int(path.name)] = line.decode(errors="replace")
    return found
