"""What holds for all tests."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# How fast examples are drawn says how busy the machine is, and nothing about what is tested.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave tests to the nights that are marked so."""
    if item.get_closest_marker("nightly") and not os.environ.get("CRASH_HARNESS_NIGHTLY"):
        pytest.skip("is run by tox -e nightly")
