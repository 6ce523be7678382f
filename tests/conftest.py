"""What holds for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How fast examples are drawn says how busy the machine is, and nothing about what is tested.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")
