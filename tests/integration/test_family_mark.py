"""What a family has left whose lane is gone: found by its mark, and nothing else is touched."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from harness.processes.family_mark import end_marked

if TYPE_CHECKING:
    from pathlib import Path

DEADLINE_S = 30.0

LANE = """
import os, subprocess, sys
from pathlib import Path
from harness.processes.family_mark import FamilyMark

mark = FamilyMark(Path(sys.argv[1]), Path(sys.argv[2]))
assert mark.number or sys.argv[3] == "unmarked"
left, told = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 3)
        os.write(told, str(os.getpid()).encode())
        os.closerange(0, 1024)
        os.execve("/bin/sleep", ["sleep", "300"], {})
    os._exit(0)
os.wait()
print(os.read(left, 20).decode(), flush=True)
sys.stdin.readline()
mark.remove()
"""


class Lane:
    """A marked process with a daemon that shares nothing with it but the mark."""

    def __init__(self, scratch: Path, register: Path, kind: str = "marked") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", LANE, str(scratch), str(register), kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.daemon = os.pidfd_open(int(self.process.stdout.readline()))

    def kill(self) -> None:
        """Kill the process, and leave the daemon."""
        self.process.kill()
        assert self.process.wait(DEADLINE_S) == -signal.SIGKILL

    def daemon_lives(self) -> bool:
        """Whether the daemon has not ended."""
        return not select.select([self.daemon], [], [], 0)[0]

    def end(self) -> None:
        """End both."""
        self.process.kill()
        self.process.communicate()
        if self.daemon_lives():
            signal.pidfd_send_signal(self.daemon, signal.SIGKILL)
        os.close(self.daemon)


def test_a_daemon_with_an_empty_environment_is_ended_once_its_lane_is_gone(tmp_path: Path) -> None:
    """It had a session, a parent and an environment of its own, and lived on for ever."""
    register = tmp_path / "register"
    lane, other = Lane(tmp_path / "a", register), Lane(tmp_path / "b", register)
    try:
        assert end_marked(register) == ()
        assert lane.daemon_lives(), "its lane lives"
        lane.kill()
        assert lane.daemon_lives(), "nothing else ends it"
        assert end_marked(register) == (tmp_path / "a",)
        assert not lane.daemon_lives()
        assert other.daemon_lives(), "it is of another family"
        assert end_marked(register) == ()
        assert len(list(register.iterdir())) == 1
    finally:
        lane.end()
        other.end()


def test_what_was_not_marked_is_never_ended(tmp_path: Path) -> None:
    """A number in the register proves nothing: the process itself must have the mark."""
    register = tmp_path / "register"
    register.touch()  # nobody can be marked, since nobody could know that the lane is gone
    lane = Lane(tmp_path, register, "unmarked")
    try:
        lane.kill()
        register.unlink()
        register.mkdir()
        for name in ("1", "ffffffffffffffff", f"{1 << 62:x}", "no-number"):
            (register / name).write_text(str(tmp_path), encoding="utf-8")
        end_marked(register)
        assert lane.daemon_lives()
    finally:
        lane.end()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_the_register_of_another_user_is_let_alone(tmp_path: Path) -> None:
    """Its place is public: another user may have made it before, with whatever in it."""
    register = tmp_path / "register"
    lane = Lane(tmp_path, register)
    try:
        lane.kill()
        os.chown(register, 12345, 12345)
        assert end_marked(register) == ()
        assert lane.daemon_lives()
        os.chown(register, 0, 0)
        end_marked(register)
        assert not lane.daemon_lives()
    finally:
        lane.end()
