"""What the process that forks does to its children, told by what it asks of the kernel."""

from __future__ import annotations

import os
import signal
import socket
from typing import TYPE_CHECKING

from harness.processes.channel import Channel
from harness.processes.forker import Forker

if TYPE_CHECKING:
    import pytest


def test_the_incarnation_goes_on_before_the_child_that_stopped_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next child to stop it came in between now and then, and nobody saw that stop."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        forker = Forker(Channel(ours.fileno()))
        forker._pids[1] = 7
        forker.go_on(1, 8)
        forker.go_on(1, 0)
    assert sent == [(7, signal.SIGCONT), (8, signal.SIGCONT), (7, signal.SIGCONT)]
