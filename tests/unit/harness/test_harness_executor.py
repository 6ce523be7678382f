"""The executor: how its lanes begin."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from harness.explore import executor

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_an_interrupt_waits_until_the_lanes_have_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 8: Ctrl-C is for the command; a lane that has not begun shows no error of its own."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    begun = []

    class Beginning:
        def __init__(self, root: Path, core: int) -> None:
            begun.append(signal.pthread_sigmask(signal.SIG_BLOCK, []))

    monkeypatch.setattr(executor, "Lane", Beginning)
    executor.Executor(2, tmp_path)
    assert begun == [before | {signal.SIGINT}] * 2
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
