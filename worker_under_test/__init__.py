"""The reference worker: durable intake, recovery by capability, reliable reporting.

It is the worker that the harness strikes first and the example that others copy. It knows nothing
of the harness but ``harness.points.crash_point``.
"""
