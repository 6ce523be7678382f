"""What holds for all tests."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# How fast examples are drawn says how busy the machine is, and nothing about what is tested.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

# Under tox, pytest keeps its cache where this variable says: every pytest that a test starts would
# find there, as what failed last, what another test's had found a moment before.
os.environ.pop("TOX_ENV_DIR", None)

# Left as it is, what is started in the background by a shell ignores it, and so would every command
# that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave tests to the nights that are marked so."""
    if item.get_closest_marker("nightly") and not os.environ.get("CRASH_HARNESS_NIGHTLY"):
        pytest.skip("is run by tox -e nightly")
