"""Crash-injection test harness: strike a worker at labelled moments and check what must hold.

Importing this package imports nothing else, so that `harness.points` stays cheap in production.
"""

__version__ = "0.1.0"
